"""What waits for its turn: the engine's before the client's, slices before what follows them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duologue.core.fence import SESSION_LANE, Fence
from duologue.core.mailbox import MailboxFull
from duologue.engines.ports import Ended, Outcome
from duologue.protocol.append_audio import AppendAudio
from duologue.protocol.commands import CommitAudio
from duologue.protocol.errors import error_body, refused
from duologue.sessions.backlog import SLICE_BYTES
from duologue.sessions.inbox import Inbox
from duologue.sessions.inputs import Rejected, SessionInput

LONG = AppendAudio(event_id="long", audio=bytes(range(250)) * 500)
COMMIT = CommitAudio()
REFUSED = Rejected(error_body(refused("too long", "audio"), "long"))


def ended(name: str) -> Ended:
    return Ended(name, Fence("s", SESSION_LANE, 0), Outcome.COMPLETED)


def as_it_is(append: AppendAudio) -> AppendAudio | Rejected:
    return append


def never(append: AppendAudio) -> AppendAudio | Rejected:
    return REFUSED


def pieces(inbox: Inbox) -> list[SessionInput]:
    taken = []
    while inbox.client_waits:
        piece = inbox.take_piece(as_it_is)
        if piece is not None:
            taken.append(piece)
    return taken


def test_what_the_engine_said_comes_before_what_the_client_did() -> None:
    inbox = Inbox(4)
    inbox.put(COMMIT)
    inbox.put_event(ended("a"))
    assert inbox.waiting
    assert [inbox.take() for _ in range(3)] == [ended("a"), COMMIT, None]
    assert not inbox.waiting


def test_too_much_of_either_is_refused_and_changes_nothing() -> None:
    inbox = Inbox(1)
    inbox.put(COMMIT)
    with pytest.raises(MailboxFull):
        inbox.put(COMMIT)
    inbox.put_event(ended("a"))
    with pytest.raises(MailboxFull):
        inbox.put_event(ended("b"))
    assert [inbox.take() for _ in range(3)] == [ended("a"), COMMIT, None]


def test_a_long_append_is_not_taken_whole_and_holds_up_what_follows() -> None:
    inbox = Inbox(4)
    inbox.put(LONG)
    inbox.put(COMMIT)
    inbox.put_event(ended("a"))
    assert [inbox.take(), inbox.take()] == [ended("a"), None]
    assert inbox.waiting
    assert inbox.client_waits
    *slices, last = pieces(inbox)
    assert b"".join(piece.audio for piece in slices) == LONG.audio  # type: ignore[union-attr]
    assert last == COMMIT
    assert not inbox.waiting


def test_a_long_append_that_is_refused_is_answered_once() -> None:
    inbox = Inbox(4)
    inbox.put(LONG)
    assert inbox.take_piece(never) == REFUSED
    assert not inbox.waiting


@given(st.lists(st.sampled_from(["engine", "client", "take"]), max_size=30))
def test_it_knows_whether_something_waits(calls: list[str]) -> None:
    inbox = Inbox(100)
    held = 0
    for call in calls:
        if call == "engine":
            inbox.put_event(ended("a"))
            held += 1
        elif call == "client":
            inbox.put(AppendAudio(audio=bytes(SLICE_BYTES)))
            held += 1
        else:
            held -= inbox.take() is not None
        assert inbox.waiting >= (held > 0)
    while inbox.take() is not None:
        held -= 1
    assert held == 0
    assert not inbox.waiting
