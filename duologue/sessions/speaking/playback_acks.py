"""What a client says about playback, booked: in the ledger, and in what the conversation holds.

This module must not know turns, nor what a plugin does with it.
"""

from __future__ import annotations

from dataclasses import dataclass

from duologue.core.audio import ms_to_samples, samples_to_ms
from duologue.core.errors import ProtocolError
from duologue.protocol.duplex.commands import AcknowledgePlayback
from duologue.protocol.duplex.events import PlaybackCursor
from duologue.protocol.errors import ErrorCode
from duologue.sessions.history.entry import Entry, Spoken
from duologue.sessions.history.history import History
from duologue.sessions.speaking.speaking import Speaking

_PEER_ITEM_PREFIX = "item_"
"""Some clients make an item's id of its response's."""

_PAST_ALL_MS = float(1 << 40)
"""Longer than any call. Without it a client's number could have no place among whole ones."""


@dataclass(frozen=True, slots=True)
class Booked:
    """What became of an acknowledgement.

    Args:
        entry: The item in which the position lies.
        whole: All of the answer is in the conversation.
        changed: Items of which another part counts as heard now.
    """

    entry: Entry
    response_id: str
    cursor: PlaybackCursor
    whole: bool
    changed: list[Entry]


class PlaybackAcks:
    """The acknowledgements of one session."""

    def __init__(self, speaking: Speaking, history: History) -> None:
        self._speaking = speaking
        self._playback = speaking.playback
        self._history = history

    def book(self, ack: AcknowledgePlayback, now: float) -> Booked:
        """Take the client's word.

        An answer may have several spoken items, which are played one after the other.

        Raises:
            ProtocolError: There is no such answer, or its ids contradict each other. Nothing
                changed.
        """
        spoken = self._target(ack)
        reached = spoken[0]
        start_ms = 0.0
        changed: list[Entry] = []
        for each in spoken:
            if start_ms <= ack.played_ms:
                reached = each
            if self._book_item(ack, each, start_ms, now):
                changed.append(each.entry)
            start_ms += each.speech.samples * 1000 / each.speech.rate_hz
        if changed:
            self._history.touch()
        return Booked(
            reached.entry,
            reached.speech.response_id,
            self._cursor(spoken, now),
            all(each.speech.complete and each.speech.cut_sample is None for each in spoken),
            changed,
        )

    def latest_response(self) -> str | None:
        """Return the id of the answer that is being said, or was said last."""
        spoken = self._find_latest()
        return spoken[0].speech.response_id if spoken else None

    def _book_item(
        self, ack: AcknowledgePlayback, item: _SpokenItem, start_ms: float, now: float
    ) -> bool:
        """Book one item; tells whether another part of it counts as heard now.

        Args:
            start_ms: Where the item begins in what the client counts.
        """
        entry, speech = item.entry, item.speech
        before = speech.heard_text()
        played_ms = _within(ack.played_ms - start_ms)
        if ack.truncate:
            heard = self._playback.truncate(entry.item.id, round(played_ms), now)
            if heard is None and entry.item.status == "in_progress":
                heard = 0
            entry.interrupted = True
        else:
            heard = self._playback.on_acknowledged(entry.item.id, played_ms, now)
        if heard is not None:
            committed = heard
            if ack.committed_ms is not None:
                committed_ms = _within(ack.committed_ms - start_ms)
                committed = min(heard, ms_to_samples(committed_ms, speech.rate_hz))
            self._commit(entry, speech, committed)
        return speech.heard_text() != before

    def _commit(self, entry: Entry, speech: Spoken, committed: int) -> None:
        """Let the conversation hold what was heard, where it does not hold the whole answer."""
        if entry.interrupted:
            speech.cut_at(committed)
        elif self._playback.only_acknowledged:
            committed = max(committed, speech.cut_sample or 0)
            # What is being said still grows, so that its end is not its end.
            whole = speech.complete and committed >= speech.samples
            speech.cut_at(None if whole else committed)

    def _target(self, ack: AcknowledgePlayback) -> list[_SpokenItem]:
        named = ack.item_id
        if ack.response_id is not None:
            found = self._find_response(ack.response_id)
        elif named is not None:
            found = self._find_item(named)
        else:
            found = self._find_latest()
        if not found:
            param = "item_id" if ack.response_id is None else "response_id"
            raise ProtocolError(
                "the conversation has no such spoken answer; name a response whose audio was sent",
                code=ErrorCode.PLAYBACK_ITEM_NOT_FOUND,
                param=None if ack.response_id is None and named is None else param,
            )
        if ack.response_id is None or named in (None, _PEER_ITEM_PREFIX + ack.response_id):
            return found
        own = [each for each in found if each.entry.item.id == named]
        if not own:
            raise ProtocolError(
                f"item_id is '{named[:64]}', this response has '{found[0].entry.item.id}'",
                code=ErrorCode.PLAYBACK_ITEM_MISMATCH,
                param="item_id",
            )
        return own

    def _find_item(self, item_id: str) -> list[_SpokenItem]:
        if item_id in self._history:
            return _spoken_items([self._history.get(item_id)])
        return self._find_response(item_id.removeprefix(_PEER_ITEM_PREFIX))

    def _find_response(self, response_id: str) -> list[_SpokenItem]:
        return _spoken_items(self._history.spoken_in(response_id))

    def _find_latest(self) -> list[_SpokenItem]:
        return _spoken_items(self._history.spoken_in(None))

    def _cursor(self, spoken: list[_SpokenItem], now: float) -> PlaybackCursor:
        """Return the clocks of all items together."""
        rate_hz = spoken[0].speech.rate_hz
        ids = [each.entry.item.id for each in spoken]
        speeches = [each.speech for each in spoken]
        held = sum(s.samples if s.cut_sample is None else s.cut_sample for s in speeches)
        playback = self._playback
        return PlaybackCursor(
            generated_ms=samples_to_ms(sum(s.samples for s in speeches), rate_hz),
            sent_ms=samples_to_ms(sum(map(playback.sent_samples, ids)), rate_hz),
            played_ms=samples_to_ms(sum(playback.heard_samples(i, now) for i in ids), rate_hz),
            committed_ms=samples_to_ms(held, rate_hz),
        )


@dataclass(frozen=True, slots=True)
class _SpokenItem:
    entry: Entry
    speech: Spoken


def _spoken_items(entries: list[Entry]) -> list[_SpokenItem]:
    return [_SpokenItem(entry, entry.spoken) for entry in entries if entry.spoken is not None]


def _within(position_ms: float) -> float:
    """Clamp what a client says to positions that there can be; what is no number is the start."""
    return min(max(0.0, position_ms), _PAST_ALL_MS)
