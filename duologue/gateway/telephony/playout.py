"""What a telephone still has to play, and what its carrier has been sent.

Sound goes to the carrier a little ahead of when it is heard, so an interruption finds little there
to forget, and a mark behind every few frames tells how far the caller has heard. This module must
not know the time, messages, nor what is said.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass, field
from typing import TypeAlias

from duologue.gateway.telephony.carrier import FRAME_BYTES, FRAME_S

BYTES_PER_MS = 8
MARK_EVERY_BYTES = 5 * FRAME_BYTES
"""A mark behind each 100 ms: that is how well is known what was heard."""

MAX_MARKS = 256
"""Marks that a carrier has not answered; further ones are left out until it does."""


@dataclass(frozen=True, slots=True)
class Play:
    """Send sound."""

    payload: bytes


@dataclass(frozen=True, slots=True)
class Mark:
    """Send a mark."""

    name: str


_ROUNDING_S = 1e-6
"""Sums of frames are not exact; without it a frame too many could go out."""


Step: TypeAlias = Play | Mark


@dataclass(frozen=True, slots=True)
class Heard:
    """How much of an item the caller has heard."""

    item_id: str
    played_ms: int


@dataclass(slots=True)
class _Speech:
    item_id: str
    waiting: deque[bytes] = field(default_factory=deque)
    waiting_bytes: int = 0
    sent_bytes: int = 0
    marked_bytes: int = 0
    complete: bool = False


class PhonePlayout:
    """The speech of one call, response after response.

    Args:
        lead_s: How far ahead of its being heard sound is sent.
        silence: The byte that fills the last frame of a response up.
    """

    def __init__(self, lead_s: float, silence: bytes) -> None:
        self._lead_s = lead_s - _ROUNDING_S
        self._silence = silence
        self._queue: OrderedDict[str, _Speech] = OrderedDict()
        self._marks: dict[str, Heard] = {}
        self._marks_made = 0
        self._busy_until = float("-inf")
        """When all that was sent will have been played, by our estimate."""

    @property
    def waiting_ms(self) -> int:
        """How much speech waits here."""
        return sum(speech.waiting_bytes for speech in self._queue.values()) // BYTES_PER_MS

    def append(self, response_id: str, item_id: str, payload: bytes) -> None:
        """Add speech; ``item_id`` is the same for all of a response."""
        speech = self._queue.get(response_id)
        if speech is None:
            speech = self._queue[response_id] = _Speech(item_id)
        speech.waiting.append(payload)
        speech.waiting_bytes += len(payload)

    def complete(self, response_id: str) -> None:
        """No more speech of a response comes: its last frame may be filled up."""
        if response_id in self._queue:
            self._queue[response_id].complete = True

    def due(self, now: float) -> list[Step]:
        """Return what is to be sent now."""
        steps: list[Step] = []
        self._busy_until = max(self._busy_until, now)
        while self._queue:
            response_id, speech = next(iter(self._queue.items()))
            if speech.waiting_bytes < FRAME_BYTES and not speech.complete:
                break
            if speech.waiting_bytes:
                if self._busy_until - now >= self._lead_s:
                    break
                steps.append(Play(_take(speech).ljust(FRAME_BYTES, self._silence)))
                self._busy_until += FRAME_S
            is_last = speech.complete and not speech.waiting_bytes
            unmarked = speech.sent_bytes - speech.marked_bytes
            if unmarked >= MARK_EVERY_BYTES or (is_last and unmarked):
                self._mark(speech, steps)
            if is_last:
                del self._queue[response_id]
        return steps

    def next_deadline(self) -> float | None:
        """When ``due`` is to be asked again without being told of anything new."""
        for speech in self._queue.values():
            if speech.waiting_bytes >= FRAME_BYTES or speech.complete:
                return self._busy_until - self._lead_s
            return None
        return None

    def mark_played(self, name: str) -> Heard | None:
        """The carrier has played up to a mark; none for one that means nothing any more."""
        return self._marks.pop(name, None)

    def stop(self, response_id: str) -> bool:
        """Drop the speech of a response; tells whether the carrier holds some of it."""
        speech = self._queue.pop(response_id, None)
        item_ids = {heard.item_id for heard in self._marks.values()}
        if speech is None:
            return False
        return self._forget() or speech.sent_bytes > 0 or speech.item_id in item_ids

    def cut(self, item_id: str) -> bool:
        """An item is heard no further, whatever of it was sent; tells whether that changes much."""
        for response_id, speech in self._queue.items():
            if speech.item_id == item_id:
                return self.stop(response_id)
        if any(heard.item_id == item_id for heard in self._marks.values()):
            return self._forget()
        return False

    def _forget(self) -> bool:
        """The carrier is told to forget all; it answers the marks then, which means nothing."""
        had_sent = bool(self._marks)
        self._marks.clear()
        self._busy_until = float("-inf")
        return had_sent

    def _mark(self, speech: _Speech, steps: list[Step]) -> None:
        speech.marked_bytes = speech.sent_bytes
        if len(self._marks) >= MAX_MARKS:
            return
        self._marks_made += 1
        name = f"heard-{self._marks_made}"
        self._marks[name] = Heard(speech.item_id, speech.sent_bytes // BYTES_PER_MS)
        steps.append(Mark(name))


def _take(speech: _Speech) -> bytes:
    """The next frame, or what is left."""
    taken = bytearray()
    while speech.waiting and len(taken) < FRAME_BYTES:
        taken += speech.waiting.popleft()
    if len(taken) > FRAME_BYTES:
        speech.waiting.appendleft(bytes(taken[FRAME_BYTES:]))
        del taken[FRAME_BYTES:]
    speech.waiting_bytes -= len(taken)
    speech.sent_bytes += len(taken)
    return bytes(taken)
