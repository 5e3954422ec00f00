"""What a call still has to play, frame by frame.

The server plays: it cuts speech into frames of 20 ms, and so it knows to the millisecond what was
heard. This module must not know clocks, codecs or events.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from duologue.core.audio import SAMPLE_BYTES, samples_to_ms

REMEMBERED_CUTS = 16
"""Responses of which more may still come although they were cut off; there are never so many."""


@dataclass(slots=True)
class _Speech:
    """The speech of one response."""

    response_id: str
    item_id: str
    chunks: deque[bytes] = field(default_factory=deque)
    waiting_bytes: int = 0
    offset: int = 0
    """Bytes of the first chunk that are played already."""
    played_bytes: int = 0
    started: bool = False
    complete: bool = False

    def take(self, size: int) -> bytes:
        taken = bytearray()
        while len(taken) < size and self.chunks:
            head = self.chunks[0]
            piece = head[self.offset : self.offset + size - len(taken)]
            taken += piece
            self.offset += len(piece)
            if self.offset == len(head):
                self.chunks.popleft()
                self.offset = 0
        self.waiting_bytes -= len(taken)
        self.played_bytes += len(taken)
        return bytes(taken)


@dataclass(frozen=True, slots=True)
class Played:
    """What one frame was.

    Args:
        pcm: A whole frame, filled up at the end of a response; ``None``: silence.
        item_id: Whose speech it was, and how much of that has been played with it.
        started: The response whose first frame it is.
        stopped: The response whose last frame it is, or that has turned out to have none left.
    """

    pcm: bytes | None = None
    item_id: str = ""
    played_ms: int = 0
    started: str | None = None
    stopped: str | None = None


SILENCE = Played()


class Playout:
    """Speech that waits, response after response.

    Args:
        frame_bytes: Of one frame, s16le mono.
        rate_hz: Of the speech.
    """

    def __init__(self, frame_bytes: int, rate_hz: int) -> None:
        self._frame_bytes = frame_bytes
        self._rate_hz = rate_hz
        self._queue: deque[_Speech] = deque()
        self._cut_off: deque[str] = deque(maxlen=REMEMBERED_CUTS)

    @property
    def sounding(self) -> str | None:
        """The response that has begun to sound."""
        head = self._queue[0] if self._queue else None
        return head.response_id if head is not None and head.started else None

    @property
    def waiting_ms(self) -> int:
        """How much speech waits."""
        waiting = sum(speech.waiting_bytes for speech in self._queue)
        return samples_to_ms(waiting // SAMPLE_BYTES, self._rate_hz)

    def append(self, response_id: str, item_id: str, pcm: bytes) -> None:
        """Add speech; ``item_id`` is the same for all of a response.

        What comes after a cut is dropped.
        """
        if not pcm or response_id in self._cut_off:
            return
        speech = self._find(response_id)
        if speech is None:
            speech = _Speech(response_id, item_id)
            self._queue.append(speech)
        if speech.complete:
            return
        speech.chunks.append(pcm)
        speech.waiting_bytes += len(pcm)

    def complete(self, response_id: str) -> None:
        """No more speech of a response comes: its last frame may be filled up."""
        speech = self._find(response_id)
        if speech is not None:
            speech.complete = True

    def next_frame(self) -> Played:
        """Play 20 ms.

        Speech that comes too slowly waits until a frame is full: half a frame in mid-word would
        be heard as a click.
        """
        while self._queue:
            speech = self._queue[0]
            if speech.waiting_bytes < self._frame_bytes and not speech.complete:
                return SILENCE
            if not speech.waiting_bytes:
                self._queue.popleft()
                return Played(stopped=speech.response_id if speech.started else None)
            return self._play(speech)
        return SILENCE

    def clear(self, response_id: str) -> bool:
        """Drop the speech of a response; tells whether some of it had been played."""
        speech = self._find(response_id)
        if speech is None:
            return False
        self._queue.remove(speech)
        return speech.started

    def cut(self, item_id: str, end_ms: int) -> str | None:
        """Play an item up to a position and no further.

        Returns:
            The response whose sound was cut off just now, if it had been started.
        """
        for speech in self._queue:
            if speech.item_id != item_id:
                continue
            end_bytes = end_ms * self._rate_hz // 1000 * SAMPLE_BYTES
            left = end_bytes - speech.played_bytes
            if left >= speech.waiting_bytes:
                return None
            if left <= 0:
                self._queue.remove(speech)
                self._cut_off.append(speech.response_id)
                return speech.response_id if speech.started else None
            kept = speech.take(left)
            speech.played_bytes -= left
            speech.chunks = deque((kept,))
            speech.offset, speech.waiting_bytes = 0, left
            speech.complete = True
            return None
        return None

    def _play(self, speech: _Speech) -> Played:
        pcm = speech.take(self._frame_bytes)
        started = None if speech.started else speech.response_id
        speech.started = True
        stopped = None
        if speech.complete and not speech.waiting_bytes:
            self._queue.popleft()
            stopped = speech.response_id
        played_ms = samples_to_ms(speech.played_bytes // SAMPLE_BYTES, self._rate_hz)
        return Played(
            pcm.ljust(self._frame_bytes, b"\0"), speech.item_id, played_ms, started, stopped
        )

    def _find(self, response_id: str) -> _Speech | None:
        return next((speech for speech in self._queue if speech.response_id == response_id), None)
