"""Decodes one audio file in a process that may be killed: a stranger's file in, PCM out.

Run as a script: the file on stdin, s16le mono PCM on stdout. Where the file is refused, the exit
status is ``REFUSED`` and stderr names the reason. Imports nothing of ours, so that it starts fast.
This module must not know who asks.
"""

from __future__ import annotations

import io
import os
import resource
import sys
from collections.abc import Iterator
from contextlib import closing
from typing import Any

REFUSED = 3
"""Exit status: the file is at fault, and stderr says ``reason value``."""

NO_AUDIO, TOO_LONG, TOO_MANY_CHANNELS = "no_audio", "too_long", "too_many_channels"

_DEMUXERS = "aac,flac,matroska,webm,mov,mp4,m4a,3gp,3g2,mj2,mp3,ogg,wav"
"""Never playlists and their kin, which open other files."""

_WRONG_PACKETS = 50
"""A file with more of them than right ones is noise."""

_MEMORY_BYTES = 2 << 30
_CPU_S = 600


class Refused(Exception):
    """The file cannot be used.

    Args:
        reason: ``NO_AUDIO``, ``TOO_LONG`` or ``TOO_MANY_CHANNELS``.
        value: What was found, where that is a number.
    """

    def __init__(self, reason: str, value: int = 0) -> None:
        super().__init__(reason, value)
        self.reason = reason
        self.value = value


def pieces(data: bytes, rate_hz: int, max_channels: int, max_s: float) -> Iterator[bytes]:
    """Yield a file's audio, mixed into one channel, at another rate.

    A file that was cut off gives what is in it. Packets that cannot be decoded are left out.

    Raises:
        Refused: There is nothing that can be decoded in it, or too much.
    """
    import av

    try:
        file: Any = av.open(
            io.BytesIO(data),
            options={"format_whitelist": _DEMUXERS, "protocol_whitelist": "none"},
        )
    except (av.FFmpegError, ValueError) as exc:
        raise Refused(NO_AUDIO) from exc
    with closing(file):
        if not file.streams.audio:
            raise Refused(NO_AUDIO)
        stream = file.streams.audio[0]
        if file.duration is not None and file.duration > max_s * av.time_base:
            raise Refused(TOO_LONG, file.duration // av.time_base)
        mono = _Mono(av, rate_hz, max_channels)
        samples = right = wrong = 0
        for packet in _packets(av, file, stream):
            try:
                frames = packet.decode()
                right += 1
            except av.FFmpegError:
                wrong += 1
                if wrong > max(_WRONG_PACKETS, right):
                    break
                continue
            for frame in frames:
                pcm = mono.convert(frame)
                samples += len(pcm) // 2
                if samples > max_s * rate_hz:
                    raise Refused(TOO_LONG, samples // rate_hz)
                yield pcm
        tail = mono.finish()
        if not samples and not tail:
            raise Refused(NO_AUDIO)
        yield tail


def _packets(av: Any, file: Any, stream: Any) -> Iterator[Any]:
    """Yield packets up to the end, or to where the file makes no sense any more."""
    demuxed = file.demux(stream)
    while True:
        try:
            yield next(demuxed)
        except (StopIteration, av.FFmpegError):
            return


class _Mono:
    """Frames of any layout as PCM of one channel."""

    def __init__(self, av: Any, rate_hz: int, max_channels: int) -> None:
        self._av = av
        self._rate_hz = rate_hz
        self._max_channels = max_channels
        self._kind: object = None
        self._resampler: Any = None

    def convert(self, frame: Any) -> bytes:
        """Return what can be made now."""
        channels = len(frame.layout.channels)
        if not 1 <= channels <= self._max_channels:
            raise Refused(TOO_MANY_CHANNELS, channels)
        if channels > 2:
            frame = self._mixed(frame)
        kind = (frame.format.name, frame.layout.name, frame.sample_rate)
        before = b""
        if kind != self._kind:
            before = self.finish()
            self._kind = kind
            self._resampler = self._av.AudioResampler("s16", "mono", self._rate_hz)
        frame.pts = None
        return before + _joined(self._resampler.resample(frame))

    def finish(self) -> bytes:
        """Return what was held back."""
        return b"" if self._resampler is None else _joined(self._resampler.resample(None))

    def _mixed(self, frame: Any) -> Any:
        """All channels in equal parts: files with many often do not say where each belongs."""
        import numpy as np

        channels = len(frame.layout.channels)
        samples = frame.to_ndarray()
        if not frame.format.is_planar:
            samples = samples.reshape(-1, channels).T
        if samples.dtype == np.uint8:
            mean = samples.mean(axis=0) / 128 - 1
        elif samples.dtype.kind == "i":
            mean = samples.mean(axis=0) / -float(np.iinfo(samples.dtype).min)
        else:
            mean = samples.mean(axis=0)
        plane = np.nan_to_num(mean.astype(np.float32)).reshape(1, -1)
        mono = self._av.AudioFrame.from_ndarray(plane, format="flt", layout="mono")
        mono.sample_rate = frame.sample_rate
        return mono


def _joined(frames: list[Any]) -> bytes:
    return b"".join(bytes(frame.planes[0])[: 2 * frame.samples] for frame in frames)


def main(arguments: list[str]) -> int:
    """Decode stdin to stdout."""
    rate_hz, max_channels, max_s = int(arguments[0]), int(arguments[1]), float(arguments[2])
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (_CPU_S, _CPU_S))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    data = sys.stdin.buffer.read()
    out = sys.stdout.buffer
    try:
        for pcm in pieces(data, rate_hz, max_channels, max_s):
            out.write(pcm)
        out.flush()
    except Refused as exc:
        # All that was written before must arrive before the reason.
        out.flush()
        sys.stderr.write(f"{exc.reason} {exc.value}\n")
        return REFUSED
    except BrokenPipeError:
        # Nobody listens any more; the interpreter must not try to flush on its way out.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
