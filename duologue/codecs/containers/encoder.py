"""Speech and other sounds as a file that can be played while it is being written.

This module must not know where the bytes go.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import numpy as np

from duologue.codecs.containers.formats import OutputFormat
from duologue.codecs.containers.wav import wav_header
from duologue.codecs.resample import StreamResampler
from duologue.core.audio import SAMPLE_BYTES


@dataclass(frozen=True, slots=True)
class _Recipe:
    """How libavformat writes a format.

    Args:
        sample_format: What the codec takes; s16 needs no conversion.
        bit_rate: Of one channel.
        rates: What the codec takes; empty: any.
    """

    container: str
    codec: str
    sample_format: str
    bit_rate: int | None = None
    rates: tuple[int, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)


_MPEG_RATES = (8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000)
_OPUS_RATES = (8000, 12000, 16000, 24000, 48000)

_LAYOUTS = {1: "mono", 2: "stereo"}

_RECIPES: Mapping[OutputFormat, _Recipe] = MappingProxyType(
    {
        # A header of lengths can only be written at the end, so there is none.
        OutputFormat.MP3: _Recipe(
            "mp3",
            "libmp3lame",
            "s16p",
            64_000,
            _MPEG_RATES,
            {"write_xing": "0", "id3v2_version": "0"},
        ),
        # Pages of one packet: the usual second would be a second of silence before speech.
        OutputFormat.OPUS: _Recipe(
            "ogg", "libopus", "s16", 48_000, _OPUS_RATES, {"page_duration": "20000"}
        ),
        OutputFormat.AAC: _Recipe("adts", "aac", "fltp", 64_000, _MPEG_RATES),
        OutputFormat.FLAC: _Recipe("flac", "flac", "s16"),
    }
)


class AudioFileEncoder:
    """Encodes one file: PCM goes in piece by piece, and the bytes that are complete come out.

    A file may begin a few milliseconds after the speech: codecs look ahead. One that nobody wants
    any more is just let go of.

    Args:
        audio_format: What is written.
        rate_hz: Of the PCM. The file has the same one, or the next one that its codec knows.
        total_bytes: Length of all PCM, where it is known; only a WAV header says it.
        channels: 1 or 2.

    Concurrency:
        Belongs to one caller at a time; costs 5 to 10 ms of CPU per second of speech where a codec
        works, next to nothing for WAV and PCM.
    """

    def __init__(
        self,
        audio_format: OutputFormat,
        rate_hz: int,
        total_bytes: int | None = None,
        *,
        channels: int = 1,
    ) -> None:
        self._half_sample = b""
        self._frame_bytes = channels * SAMPLE_BYTES
        is_wav = audio_format is OutputFormat.WAV
        self._before = wav_header(rate_hz, total_bytes, channels) if is_wav else b""
        recipe = _RECIPES.get(audio_format)
        self._codec = None if recipe is None else _Codec(recipe, rate_hz, channels)

    @property
    def compresses(self) -> bool:
        """Whether encoding is work, which the event loop should not do."""
        return self._codec is not None

    def encode(self, pcm: bytes) -> bytes:
        """Take s16le PCM, channels interleaved; returns what can be written now."""
        if self._codec is None:
            before, self._before = self._before, b""
            return before + pcm if before else pcm
        pcm = self._half_sample + pcm
        whole = len(pcm) - len(pcm) % self._frame_bytes
        self._half_sample = pcm[whole:]
        return self._codec.encode(pcm[:whole])

    def finish(self) -> bytes:
        """Return the end of the file. Nothing may follow."""
        if self._codec is None:
            before, self._before = self._before, b""
            return before
        return self._codec.finish()


class _Codec:
    """A muxer and a codec of libav, writing to memory."""

    def __init__(self, recipe: _Recipe, rate_hz: int, channels: int) -> None:
        import av

        self._av: Any = av
        self._rate_hz = _next_rate(rate_hz, recipe.rates)
        self._layout = _LAYOUTS[channels]
        self._to_rate = [StreamResampler(rate_hz, self._rate_hz) for _ in range(channels)]
        self._written = _Written()
        self._file: Any = av.open(
            self._written,
            "w",
            format=recipe.container,
            options={**recipe.options, "flush_packets": "1"},
        )
        self._stream: Any = self._file.add_stream(
            recipe.codec, rate=self._rate_hz, layout=self._layout
        )
        codec: Any = self._stream.codec_context
        codec.format = recipe.sample_format
        codec.thread_count = 1  # libav would start one for each core
        if recipe.bit_rate is not None:
            codec.bit_rate = channels * recipe.bit_rate
        self._convert: Any = av.AudioResampler(recipe.sample_format, self._layout, self._rate_hz)
        self._samples = 0
        # A file and its streams refer to each other, so one that is let go of would keep its
        # codec until the next great collection, which is hours away in a server that is idle.
        self._let_go = weakref.finalize(self, self._file.close)
        self._let_go.atexit = False

    def encode(self, pcm: bytes) -> bytes:
        if len(self._to_rate) == 1:
            self._write(self._to_rate[0].process(pcm))
        else:
            apart = np.frombuffer(pcm, "<i2").reshape(-1, len(self._to_rate)).T
            each = zip(self._to_rate, apart, strict=True)
            self._write(_interleaved([one.process(samples.tobytes()) for one, samples in each]))
        return self._written.take()

    def finish(self) -> bytes:
        self._write(_interleaved([each.flush() for each in self._to_rate]))
        for packet in self._stream.encode(None):
            self._file.mux(packet)
        self._let_go()
        return self._written.take()

    def _write(self, pcm: bytes) -> None:
        if not pcm:
            return
        samples = len(pcm) // (SAMPLE_BYTES * len(self._to_rate))
        frame = self._av.AudioFrame("s16", self._layout, samples, align=1)
        frame.planes[0].update(pcm)
        frame.sample_rate = self._rate_hz
        frame.time_base = Fraction(1, self._rate_hz)
        frame.pts = self._samples
        self._samples += samples
        for converted in self._convert.resample(frame):
            for packet in self._stream.encode(converted):
                self._file.mux(packet)


class _Written:
    """What libavformat wrote since the last look. It cannot be sought in."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def write(self, data: bytes) -> int:
        """Take bytes, whose memory is libav's."""
        self._parts.append(bytes(data))
        return len(data)

    def take(self) -> bytes:
        """Return everything."""
        parts, self._parts = self._parts, []
        return b"".join(parts)


def _interleaved(channels: Sequence[bytes]) -> bytes:
    """Return the samples of equally long channels, one of each after another."""
    if len(channels) == 1:
        return channels[0]
    return np.stack([np.frombuffer(each, "<i2") for each in channels], axis=1).tobytes()


def _next_rate(rate_hz: int, known: tuple[int, ...]) -> int:
    if not known or rate_hz in known:
        return rate_hz
    return next((rate for rate in known if rate >= rate_hz), known[-1])
