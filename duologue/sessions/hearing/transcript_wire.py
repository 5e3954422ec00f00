"""How transcripts of the person's speech are shown to the client.

Deltas can only be added to, so only what a recogniser has proved to stand by is sent before the
end. Should it change its mind all the same, the client keeps what it was told and is told the rest:
the deltas together are the transcript, always. This module must not know how a transcript comes
about.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from duologue.duplex_plugins.contract import TranscriptKind
from duologue.protocol.errors import ERROR_TABLE, ErrorCode
from duologue.protocol.events import (
    DurationUsage,
    Event,
    TranscriptionCompleted,
    TranscriptionDelta,
    TranscriptionError,
    TranscriptionFailed,
)
from duologue.sessions.hearing.transcription import TranscriptReady

REMEMBERED_ITEMS = 64
"""Turns that wait for their last transcript; one that was abandoned waits for ever."""

ALIGNED_WORDS = 32
"""So much of a disagreement is lined up word by word; the cost grows with its square."""

_MARKS = ".,;:!?\"'-"

_CODES = frozenset(ErrorCode)


class TranscriptWire:
    """Remembers, per item, what was sent as deltas."""

    def __init__(self, rate_hz: int) -> None:
        self._rate_hz = rate_hz
        self._sent: dict[str, str] = {}
        self._places: dict[str, int] = {}

    def place(self, item_id: str, content_index: int) -> None:
        """Say which part of an item its speech is, where that is not the first."""
        if content_index:
            self._places[item_id] = content_index

    def events(self, ready: TranscriptReady) -> Iterator[Event]:
        """Yield what a new transcript adds for the client."""
        sent = self._sent.get(ready.item_id, "")
        if ready.kind is not TranscriptKind.FINAL:
            if len(ready.stable) > len(sent) and ready.stable.startswith(sent):
                self._sent[ready.item_id] = ready.stable
                if len(self._sent) > REMEMBERED_ITEMS:
                    del self._sent[next(iter(self._sent))]
                yield TranscriptionDelta(item_id=ready.item_id, delta=ready.stable[len(sent) :])
            return
        self._sent.pop(ready.item_id, None)
        index = self._places.pop(ready.item_id, 0)
        text = continued(sent, ready.text)
        if len(text) > len(sent):
            delta = text[len(sent) :]
            yield TranscriptionDelta(item_id=ready.item_id, content_index=index, delta=delta)
        yield TranscriptionCompleted(
            item_id=ready.item_id,
            content_index=index,
            transcript=text,
            usage=DurationUsage(seconds=round(ready.audio_samples / self._rate_hz, 3)),
        )

    def nothing_said(self, item_id: str, length_ms: int) -> Iterator[Event]:
        """Yield what there is to tell of a turn in which nobody spoke."""
        usage = DurationUsage(seconds=length_ms / 1000)
        yield TranscriptionCompleted(item_id=item_id, transcript="", usage=usage)

    def failed(self, item_id: str, code: str) -> TranscriptionFailed:
        """Return the event for an item that will have no transcript."""
        self._sent.pop(item_id, None)
        # A runner may report codes of its own; clients see only those that are in the table.
        known = ErrorCode(code) if code in _CODES else ErrorCode.STAGE_FAILED
        row = ERROR_TABLE[known]
        return TranscriptionFailed(
            item_id=item_id,
            content_index=self._places.pop(item_id, 0),
            error=TranscriptionError(type=row.type, code=known, message=row.public_text),
        )


def continued(sent: str, final: str) -> str:
    """Return the final text as it goes on after ``sent``, which cannot be taken back.

    Where the two disagree, what was sent stands, and the words of ``final`` follow that come after
    the place which ``sent`` matches best.
    """
    if final.startswith(sent):
        return final
    said, heard = sent.split(), final.split()
    agreed = 0
    while agreed < min(len(said), len(heard)) and _same(said[agreed], heard[agreed]):
        agreed += 1
    apart = said[agreed:]
    # What is apart by more than can be lined up here is passed over word for word.
    rest = heard[agreed + max(0, len(apart) - ALIGNED_WORDS) :]
    matched = _best_prefix(apart[-ALIGNED_WORDS:], rest[: 2 * ALIGNED_WORDS])
    return " ".join((sent, *rest[matched:]))


def _best_prefix(said: Sequence[str], heard: Sequence[str]) -> int:
    """Return how many of ``heard`` are nearest to all of ``said``; of equals, the most."""
    costs = list(range(len(heard) + 1))
    for row, word in enumerate(said, 1):
        above_left, costs[0] = costs[0], row
        for column, other in enumerate(heard, 1):
            changed = above_left + (not _same(word, other))
            above_left = costs[column]
            costs[column] = min(changed, above_left + 1, costs[column - 1] + 1)
    return min(reversed(range(len(costs))), key=costs.__getitem__)


def _same(one: str, other: str) -> bool:
    return one.strip(_MARKS).casefold() == other.strip(_MARKS).casefold()
