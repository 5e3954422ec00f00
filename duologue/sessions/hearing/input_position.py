"""The client's own count of its samples, seen against what the session has taken in.

Audio that was taken already is left out, and what is missing is silence. This module must not know
sessions or messages.
"""

from __future__ import annotations

import msgspec

from duologue.codecs.opus_packets import CLOCK_HZ, join, split, without_front
from duologue.core.audio import samples_to_ms
from duologue.core.errors import CodecError, ProtocolError
from duologue.protocol.audio_formats import (
    AudioFormat,
    OpusFormat,
    PcmaFormat,
    PcmuFormat,
    format_rate_hz,
    format_sample_bytes,
)
from duologue.protocol.errors import ErrorCode, refused
from duologue.protocol.limits import MAX_INPUT_GAP_MS

REPORT_EVERY_MS = 1000

_SILENCE: dict[type, bytes] = {PcmuFormat: b"\xff", PcmaFormat: b"\xd5"}


class Placed(msgspec.Struct, frozen=True, gc=False):
    """Audio as it is to be taken in: without what is known, with silence for what is missing.

    A struct, since one is made for every message.
    """

    audio: bytes
    missing: int
    offset: int


class InputPosition:
    """Where the client's count stands. ``place`` changes nothing; ``took`` does.

    Units:
        Samples, at the rate of the wire. ``taken`` is all that the session has taken in so far.
    """

    __slots__ = ("_offset", "_reported", "missing")

    def __init__(self) -> None:
        self.missing = 0
        self._offset: int | None = None
        self._reported = 0

    def next_sample(self, taken: int) -> int:
        """Return the first sample that the session does not have; 0 before the first position."""
        return 0 if self._offset is None else self._offset + taken

    def place(self, audio: bytes, start_sample: int, taken: int, wire: AudioFormat) -> Placed:
        """Return what of the audio is to be taken in.

        Raises:
            ProtocolError: So much is missing before it that nobody would wait for it, or it begins
                in the middle of a packet that is known.
        """
        offset = start_sample - taken if self._offset is None else self._offset
        missing = start_sample - offset - taken
        if missing == 0:
            return Placed(audio, 0, offset)
        size = format_sample_bytes(wire)
        if missing < 0:
            if isinstance(wire, OpusFormat):
                return Placed(_later_packets(audio, -missing, wire), 0, offset)
            return Placed(audio[-missing * size :], 0, offset)
        rate_hz = format_rate_hz(wire)
        if samples_to_ms(missing, rate_hz) > MAX_INPUT_GAP_MS:
            raise ProtocolError(
                f"start_sample is {start_sample}, the server has the audio before "
                f"{offset + taken}: {samples_to_ms(missing, rate_hz)} ms are missing, the limit is "
                f"{MAX_INPUT_GAP_MS} ms. Send them, or go on without start_sample.",
                code=ErrorCode.INPUT_GAP,
                param="start_sample",
            )
        if isinstance(wire, OpusFormat):
            # Nothing can be put between packets of which each builds on the one before.
            return Placed(audio, missing, offset + missing)
        return Placed(_SILENCE.get(type(wire), bytes(size)) * missing + audio, missing, offset)

    def took(self, placed: Placed) -> None:
        """Note that audio was taken in."""
        self._offset = placed.offset
        self.missing += placed.missing

    def report_due(self, taken: int, rate_hz: int) -> bool:
        """Tell whether the client should hear how far the session is; it then counts as told."""
        position = self.next_sample(taken)
        if samples_to_ms(position - self._reported, rate_hz) < REPORT_EVERY_MS:
            return False
        self._reported = position
        return True


def _later_packets(audio: bytes, known: int, wire: OpusFormat) -> bytes:
    """Leave out the packets that are known; ``known`` counts samples at the rate of the wire."""
    try:
        return join(without_front(split(audio), known * CLOCK_HZ // wire.rate))
    except CodecError as exc:
        raise refused(f"audio: {exc.message}", "audio", ErrorCode.UNDECODABLE_AUDIO) from None
