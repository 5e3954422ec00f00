"""What a client has sent faster than it is taken in."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duologue.core.mailbox import MailboxFull
from duologue.protocol.commands import AppendAudio, CommitAudio
from duologue.sessions.backlog import SLICE_BYTES, Backlog, is_long

LONG = AppendAudio(event_id="long", audio=bytes(range(250)) * 500)
COMMIT = CommitAudio()


def test_only_an_append_of_more_than_a_slice_is_long() -> None:
    assert is_long(AppendAudio(audio=bytes(SLICE_BYTES + 1)))
    assert not is_long(AppendAudio(audio=bytes(SLICE_BYTES)))
    assert not is_long(COMMIT)


def test_inputs_come_out_in_order() -> None:
    backlog = Backlog(4)
    items = [CommitAudio(event_id=str(number)) for number in range(3)]
    for item in items:
        backlog.put(item)
    assert [backlog.take() for _ in range(4)] == [*items, None]


def test_more_than_there_is_room_for_is_refused() -> None:
    backlog = Backlog(1)
    backlog.put(COMMIT)
    with pytest.raises(MailboxFull):
        backlog.put(COMMIT)
    assert backlog.take() == COMMIT
    assert backlog.empty


def test_a_long_append_is_taken_slice_by_slice_and_keeps_its_name() -> None:
    backlog = Backlog(4)
    backlog.slice_up(LONG)
    pieces = []
    while (piece := backlog.take_slice()) is not None:
        pieces.append(piece)
    assert [len(piece.audio) for piece in pieces] == [SLICE_BYTES, SLICE_BYTES, 29_000]
    assert b"".join(piece.audio for piece in pieces) == LONG.audio
    assert {piece.event_id for piece in pieces} == {"long"}
    assert backlog.empty


def test_what_follows_a_long_append_waits_behind_it() -> None:
    backlog = Backlog(4)
    backlog.put(LONG)
    backlog.put(COMMIT)
    assert backlog.take_short() is None
    assert backlog.take_short() is None
    assert backlog.take() == LONG
    backlog.slice_up(LONG)
    assert backlog.take_short() is None
    while backlog.take_slice() is not None:
        pass
    assert backlog.take_short() == COMMIT


def test_where_nothing_is_long_nothing_waits() -> None:
    backlog = Backlog(4)
    assert backlog.take_short() is None
    assert backlog.empty
    backlog.put(COMMIT)
    assert not backlog.empty
    assert backlog.take_short() == COMMIT
    assert backlog.empty


@given(sizes=st.lists(st.integers(0, 3 * SLICE_BYTES), max_size=6))
def test_no_byte_is_lost_doubled_or_moved(sizes: list[int]) -> None:
    backlog = Backlog(10)
    appends = [AppendAudio(audio=bytes([n]) * size) for n, size in enumerate(sizes)]
    for append in appends:
        backlog.put(append)
    heard = b""
    while not backlog.empty:
        item = backlog.take_slice() or backlog.take()
        assert isinstance(item, AppendAudio)
        if is_long(item) and item in appends:
            backlog.slice_up(item)
        else:
            heard += item.audio
    assert heard == b"".join(append.audio for append in appends)
