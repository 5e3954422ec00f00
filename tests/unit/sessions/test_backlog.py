"""What a client has sent faster than it is taken in."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from duologue.core.mailbox import MailboxFull
from duologue.protocol.append_audio import AppendAudio
from duologue.protocol.commands import (
    CommitAudio,
    CreateItem,
    CreateResponse,
    ResponseParams,
    UpdateSession,
)
from duologue.protocol.duplex.commands import ShowFrame
from duologue.protocol.events import ErrorBody
from duologue.protocol.items import FunctionCallOutputItem, InputAudio, InputText, MessageItem
from duologue.protocol.session_config import FunctionTool
from duologue.protocol.session_patch import SessionPatch
from duologue.sessions.backlog import INPUT_BYTES, SLICE_BYTES, Backlog, is_long, weight
from duologue.sessions.inputs import Rejected, SessionInput

LONG = AppendAudio(event_id="long", audio=bytes(range(250)) * 500)
COMMIT = CommitAudio()


TEXT = "x" * 1000
TOOL = FunctionTool(name="look_up", parameters={"properties": {"a": {"enum": [TEXT, TEXT + "y"]}}})
WEIGHED = [
    (CommitAudio(), 0),
    (CommitAudio(event_id="e" * 500), 500),
    (ShowFrame(data=bytes(1000)), 1000),
    (CreateItem(item=FunctionCallOutputItem(call_id="c" * 30, output=TEXT)), 1030),
    (CreateResponse(response=ResponseParams(instructions=TEXT, metadata={"k": TEXT})), 2000),
    (
        CreateResponse(
            response=ResponseParams(
                input=(MessageItem(role="user", content=(InputText(text=TEXT),)),) * 3
            )
        ),
        3000,
    ),
    (UpdateSession(session=SessionPatch(instructions=TEXT, tools=(TOOL,))), 3000),
    (UpdateSession(session=SessionPatch(instructions="\N{SNOWMAN}" * 1000)), 2000),
    (Rejected(ErrorBody(type="invalid_request_error", message=TEXT)), 1000),
]


@pytest.mark.parametrize(("item", "content_bytes"), WEIGHED)
def test_what_waits_weighs_what_is_in_it(item: SessionInput, content_bytes: int) -> None:
    around = weight(item) - INPUT_BYTES - content_bytes
    assert 0 < around < 4000


def test_what_one_message_may_hold_is_not_booked_as_nothing() -> None:
    backlog = Backlog(10, max_bytes=32 << 20)
    item = MessageItem(role="user", content=(InputText(text="x" * 100_000),))
    huge = CreateResponse(response=ResponseParams(input=(item,) * 130))
    backlog.put(huge)
    backlog.put(huge)
    with pytest.raises(MailboxFull, match="limit of"):
        backlog.put(huge)
    assert backlog.held_bytes == backlog.count_held() > 26_000_000
    assert [backlog.take(), backlog.take()] == [huge, huge]
    assert backlog.held_bytes == 0


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


def test_more_bytes_than_there_is_room_for_are_refused_and_the_largest_append_always_fits() -> None:
    backlog = Backlog(10, max_bytes=100_000)
    backlog.put(LONG)
    with pytest.raises(MailboxFull, match="limit of 100000"):
        backlog.put(AppendAudio(audio=bytes(10)))
    assert (len(backlog), backlog.held_bytes) == (1, len(LONG.audio) + INPUT_BYTES)
    backlog.take()
    backlog.put(AppendAudio(audio=bytes(60_000)))
    with pytest.raises(MailboxFull):
        backlog.put(speech_item(60_000))
    backlog.put(speech_item(30_000))


def speech_item(size: int) -> CreateItem:
    audio = InputAudio(audio=bytes(size))
    return CreateItem(item=MessageItem(role="user", content=(audio, InputText(text="Hi"))))


class BacklogHistory(RuleBasedStateMachine):
    """Whatever is put, taken and sliced up: what is accounted is what is held, within the bound."""

    LIMIT = 2 * SLICE_BYTES

    def __init__(self) -> None:
        super().__init__()
        self.backlog = Backlog(6, max_bytes=self.LIMIT)

    @rule(size=st.integers(0, 3 * SLICE_BYTES), kind=st.sampled_from(["audio", "item", "commit"]))
    def put(self, size: int, kind: str) -> None:
        kinds = {"audio": AppendAudio(audio=bytes(size)), "item": speech_item(size)}
        before = self.backlog.held_bytes, len(self.backlog)
        try:
            self.backlog.put(kinds.get(kind, COMMIT))
        except MailboxFull:
            assert (self.backlog.held_bytes, len(self.backlog)) == before
            assert before[1] > 0

    @rule()
    def take_short(self) -> None:
        self.backlog.take_short()

    @rule()
    def work_off(self) -> None:
        if self.backlog.take_slice() is None:
            item = self.backlog.take()
            if isinstance(item, AppendAudio) and is_long(item):
                self.backlog.slice_up(item)

    @invariant()
    def accounted_is_held(self) -> None:
        backlog = self.backlog
        assert backlog.held_bytes == backlog.count_held()
        assert backlog.empty is (len(backlog) == 0)
        assert backlog.held_bytes <= self.LIMIT or len(backlog) == 1


TestBacklogHistory = BacklogHistory.TestCase


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
