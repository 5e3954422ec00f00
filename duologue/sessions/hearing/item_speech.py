"""Speech that came inside an item, on its way to the recogniser: a slice at a time.

Minutes of it may come in one message, and converting them at once would hold the loop for all. This
module must not know items beyond their ids, nor what a transcript is for.
"""

from __future__ import annotations

from dataclasses import dataclass

from duologue.codecs.decoder import InputDecoder
from duologue.core.audio import SAMPLE_BYTES, AudioFrame
from duologue.core.errors import LimitExceeded
from duologue.protocol.audio_formats import AudioFormat, format_rate_hz, format_sample_bytes
from duologue.sessions.hearing.transcription import Transcriber

SLICE_S = 1.0
"""So much is converted at a time: about two milliseconds of CPU."""

PAUSE_S = 0.005
"""Between two slices, in which others have their turn."""


@dataclass(slots=True)
class _Speech:
    item_id: str
    wire: bytes
    decoder: InputDecoder
    slice_bytes: int
    taken: int = 0
    samples: int = 0


class ItemSpeech:
    """Speech of items that waits to be transcribed, in order, bounded.

    Args:
        rate_hz: What the recogniser is given.
        capacity_ms: How much may wait.
    """

    __slots__ = ("_capacity_ms", "_rate_hz", "_transcriber", "_waiting", "_waiting_ms", "due_at")

    def __init__(self, transcriber: Transcriber, rate_hz: int, capacity_ms: int) -> None:
        self._transcriber = transcriber
        self._rate_hz = rate_hz
        self._capacity_ms = capacity_ms
        # A list, since it is short, and in most calls empty: an empty deque has 600 bytes.
        self._waiting: list[_Speech] = []
        self._waiting_ms = 0.0
        self.due_at: float | None = None
        """When the next slice is to be taken; ``None`` where none waits."""

    def check_room(self, wire_bytes: int, audio_format: AudioFormat, param: str) -> None:
        """Judge whether so much more may wait.

        Raises:
            LimitExceeded: It may not.
        """
        length_ms = _length_ms(wire_bytes, audio_format)
        if self._waiting_ms + length_ms > self._capacity_ms:
            raise LimitExceeded(
                f"{round(self._waiting_ms)} ms of speech in items wait to be transcribed and "
                f"{round(length_ms)} ms more do not fit: the limit is {self._capacity_ms} ms",
                code="input_audio_buffer_full",
                param=param,
            )

    def add(self, item_id: str, wire: bytes, audio_format: AudioFormat, now: float) -> None:
        """Have the speech of an item transcribed."""
        size = format_sample_bytes(audio_format)
        slice_bytes = int(format_rate_hz(audio_format) * SLICE_S) * size
        decoder = InputDecoder(audio_format, self._rate_hz)
        self._waiting.append(_Speech(item_id, wire, decoder, slice_bytes))
        self._waiting_ms += _length_ms(len(wire), audio_format)
        self.due_at = now if self.due_at is None else self.due_at

    def work_off(self, now: float) -> None:
        """Give the recogniser the next slice; at the end of an item, ask for its words."""
        speech = self._waiting[0]
        if not speech.taken:
            self._transcriber.begin(speech.item_id, AudioFrame(b"", self._rate_hz, 0))
        piece = speech.wire[speech.taken : speech.taken + speech.slice_bytes]
        speech.taken += len(piece)
        self._feed(speech, speech.decoder.decode(piece))
        self._waiting_ms -= _length_ms(len(piece), speech.decoder.audio_format)
        if speech.taken >= len(speech.wire):
            self._feed(speech, speech.decoder.flush())
            self._transcriber.commit(speech.item_id, speech.samples)
            self._waiting.pop(0)
        self.due_at = now + PAUSE_S if self._waiting else None

    def drop(self, item_id: str) -> bool:
        """Forget the speech of an item; tells whether some of it still waited."""
        for speech in self._waiting:
            if speech.item_id == item_id:
                self._waiting.remove(speech)
                left = len(speech.wire) - speech.taken
                self._waiting_ms -= _length_ms(left, speech.decoder.audio_format)
                self.due_at = self.due_at if self._waiting else None
                return True
        return False

    def _feed(self, speech: _Speech, pcm: bytes) -> None:
        self._transcriber.add(speech.item_id, AudioFrame(pcm, self._rate_hz, speech.samples))
        speech.samples += len(pcm) // SAMPLE_BYTES


def _length_ms(wire_bytes: int, audio_format: AudioFormat) -> float:
    samples = wire_bytes / format_sample_bytes(audio_format)
    return 1000 * samples / format_rate_hz(audio_format)
