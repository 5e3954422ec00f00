"""Pictures and sound in, fragments of an MP4 out, each as soon as its picture is encoded.

H.264 and AAC by libav; it leaves the interpreter while it encodes, so a thread may do this beside
others. This module must not know who watches.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any, TypeAlias

import av
import numpy as np
from av.codec.context import Flags
from numpy.typing import NDArray

from duologue.codecs.fmp4.boxes import AudioTrack, Run, Sample, VideoTrack, fragment, header
from duologue.codecs.pictures import Pixels

Packet: TypeAlias = "av.Packet[Any]"

VIDEO_TIMESCALE = 90_000
AAC_SAMPLES = 1024
"""Of one frame, and of the priming before the first."""

_VIDEO_ID = 1
_AUDIO_ID = 2
_PARAMETER_SETS = (7, 8, 9)
"""Kinds of H.264 units that the header holds, or that no MP4 has."""


class Fmp4Writer:
    """Writes one film.

    Args:
        rate: Pictures a second.
        audio_rate_hz: Of the sound; ``None``: it has none.
        crf: How much may be lost, 0 to 51; 23 is usual.
    """

    def __init__(
        self,
        width: int,
        height: int,
        rate: int | Fraction,
        *,
        audio_rate_hz: int | None = None,
        channels: int = 1,
        crf: int = 23,
    ) -> None:
        if width % 2 or height % 2:
            raise ValueError(f"the sides of a film are even; these are {width}x{height}")
        self._rate = Fraction(rate)
        self._video = self._open_video(width, height, crf)
        sps, pps = _parameter_sets(self._video.extradata or b"")
        self._tracks: list[VideoTrack | AudioTrack] = [
            VideoTrack(_VIDEO_ID, width, height, VIDEO_TIMESCALE, sps, pps)
        ]
        self._audio: av.AudioCodecContext | None = None
        self._layout = "mono" if channels == 1 else "stereo"
        if audio_rate_hz is not None:
            self._audio = self._open_audio(audio_rate_hz)
            config = self._audio.extradata or b""
            self._tracks.append(AudioTrack(_AUDIO_ID, audio_rate_hz, channels, config, AAC_SAMPLES))
        self._begun = False
        self._pictures = 0
        self._shown = 0
        self._fragments = 0
        self._rest: NDArray[np.float32] = np.empty((channels, 0), np.float32)
        self._samples_in = 0
        self._samples_out = 0

    @property
    def mime(self) -> str:
        """What a browser is asked whether it can play."""
        return f'video/mp4; codecs="{", ".join(track.codec for track in self._tracks)}"'

    def add(self, pictures: Iterable[Pixels], sound: NDArray[np.float32] | None = None) -> bytes:
        """Return what pictures, and the sound that goes with them, add to the film.

        Args:
            pictures: Each [height, width, 3].
            sound: [channels, samples], -1 to 1.
        """
        videos = [packet for each in pictures for packet in self._encode_picture(each)]
        audios = [] if sound is None else self._encode_sound(sound)
        return self._written(videos, audios)

    def end(self) -> bytes:
        """Return what is left."""
        videos = list(self._video.encode(None))
        audios: list[Packet] = []
        if self._audio is not None:
            audios = self._encode_rest()
        return self._written(videos, audios)

    def _open_video(self, width: int, height: int, crf: int) -> av.VideoCodecContext:
        context = av.CodecContext.create("libx264", "w")
        assert isinstance(context, av.VideoCodecContext)
        context.width, context.height, context.pix_fmt = width, height, "yuv420p"
        context.time_base = 1 / self._rate
        context.framerate = self._rate
        context.max_b_frames = 0  # so that pictures leave in the order in which they are shown
        context.gop_size = max(1, round(self._rate))
        context.flags |= Flags.global_header
        context.options = {"preset": "ultrafast", "tune": "zerolatency", "crf": str(crf)}
        context.open()
        return context

    def _open_audio(self, rate_hz: int) -> av.AudioCodecContext:
        context = av.CodecContext.create("aac", "w")
        assert isinstance(context, av.AudioCodecContext)
        context.sample_rate = rate_hz
        context.layout = self._layout
        context.format = "fltp"
        context.time_base = Fraction(1, rate_hz)
        context.flags |= Flags.global_header
        context.open()
        return context

    def _encode_picture(self, pixels: Pixels) -> list[Packet]:
        frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(pixels), format="rgb24")
        frame.pts, frame.time_base = self._pictures, 1 / self._rate
        self._pictures += 1
        return list(self._video.encode(frame))

    def _encode_sound(self, sound: NDArray[np.float32]) -> list[Packet]:
        assert self._audio is not None, "this film has no sound"
        waiting = np.concatenate((self._rest, sound.astype(np.float32)), axis=1)
        whole = waiting.shape[1] // AAC_SAMPLES * AAC_SAMPLES
        self._rest = waiting[:, whole:]
        packets = []
        for start in range(0, whole, AAC_SAMPLES):
            packets += self._encode_frame(waiting[:, start : start + AAC_SAMPLES])
        return packets

    def _encode_rest(self) -> list[Packet]:
        assert self._audio is not None
        packets = self._encode_frame(self._rest) if self._rest.shape[1] else []
        return [*packets, *self._audio.encode(None)]

    def _encode_frame(self, sound: NDArray[np.float32]) -> list[Packet]:
        assert self._audio is not None
        frame = av.AudioFrame.from_ndarray(
            np.ascontiguousarray(sound), format="fltp", layout=self._layout
        )
        frame.sample_rate = self._audio.sample_rate
        frame.pts, frame.time_base = self._samples_in, Fraction(1, self._audio.sample_rate)
        self._samples_in += sound.shape[1]
        return list(self._audio.encode(frame))

    def _written(self, videos: list[Packet], audios: list[Packet]) -> bytes:
        runs = []
        if videos:
            runs.append(self._video_run(videos))
        if audios:
            samples = [Sample(bytes(each), AAC_SAMPLES, True) for each in audios]
            runs.append(Run(_AUDIO_ID, self._samples_out, samples))
            self._samples_out += AAC_SAMPLES * len(samples)
        head = b"" if self._begun else header(self._tracks)
        self._begun = True
        if not runs:
            return head
        self._fragments += 1
        return head + fragment(self._fragments, runs)

    def _video_run(self, packets: list[Packet]) -> Run:
        start = self._picture_time(self._shown)
        samples = []
        for packet in packets:
            now, following = self._picture_time(self._shown), self._picture_time(self._shown + 1)
            units = [unit for unit in _units(bytes(packet)) if unit[0] & 31 not in _PARAMETER_SETS]
            data = b"".join(len(unit).to_bytes(4, "big") + unit for unit in units)
            samples.append(Sample(data, following - now, packet.is_keyframe))
            self._shown += 1
        return Run(_VIDEO_ID, start, samples)

    def _picture_time(self, number: int) -> int:
        """Exact over any length: the rounding of one picture is not carried into the next."""
        return int(number * VIDEO_TIMESCALE / self._rate)


def _parameter_sets(extradata: bytes) -> tuple[bytes, bytes]:
    by_kind = {unit[0] & 31: unit for unit in _units(extradata)}
    return by_kind[7], by_kind[8]


def _units(stream: bytes) -> list[bytes]:
    """Cut a stream with start codes (H.264 Annex B) into its units."""
    pieces = stream.split(b"\x00\x00\x01")[1:]
    # A start code of four bytes leaves its first zero at the end of the unit before it.
    return [piece.rstrip(b"\x00") for piece in pieces if piece]
