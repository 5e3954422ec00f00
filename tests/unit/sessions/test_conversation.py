"""What a client may do to the conversation."""

from __future__ import annotations

import random

import pytest

from duologue.core.errors import ProtocolError
from duologue.core.ids import id_maker
from duologue.protocol.commands import CreateItem, DeleteItem, RetrieveItem, TruncateItem
from duologue.protocol.duplex.commands import ShowFrame
from duologue.protocol.duplex.events import FramesConsumed
from duologue.protocol.events import (
    AudioCommitted,
    ItemAdded,
    ItemDeleted,
    ItemDone,
    ItemRetrieved,
    ItemTruncated,
)
from duologue.protocol.items import (
    FunctionCallItem,
    FunctionCallOutputItem,
    InputAudio,
    InputText,
    Item,
    MessageItem,
    OutputAudio,
    OutputText,
)
from duologue.sessions.conversation import Conversation
from duologue.sessions.history.entry import Spoken
from duologue.sessions.history.history import History
from duologue.sessions.seeing.sight import Sight
from duologue.sessions.settings import FrameSettings
from duologue.sessions.speaking.playback import PlaybackLedger
from duologue.sessions.speaking.silencer import Silencer
from tests.fakes.pictures import picture

RATE_HZ = 1000
T = 100.0
TEXT = "one two three four five six"


def user(item_id: str = "", text: str = "hello") -> MessageItem:
    return MessageItem(id=item_id, role="user", content=(InputText(text=text),))


class Bench:
    """A conversation, and an answer of the assistant in it if a test wants one."""

    def __init__(self, max_items: int = 10) -> None:
        self.history = History(max_items)
        self.playback = PlaybackLedger(RATE_HZ, Silencer())
        self.conversation = Conversation(self.history, self.playback, id_maker(random.Random(0)))

    def add(self, item: Item) -> None:
        self.history.add(item)

    def speak(
        self, item_id: str = "a", *, sent_ms: int = 6000, status: str = "completed"
    ) -> Spoken:
        """Let the assistant say six words in six seconds."""
        content = (OutputAudio(transcript=TEXT),)
        item = MessageItem(id=item_id, role="assistant", status=status, content=content)  # type: ignore[arg-type]
        spoken = Spoken("r", RATE_HZ, TEXT, [], 6000, complete=True)
        self.history.add(item).spoken = spoken
        if sent_ms:
            self.playback.on_sent(item_id, sent_ms, T)
        return spoken

    def truncate(self, item_id: str, end_ms: int, content_index: int = 0) -> ItemTruncated:
        command = TruncateItem(item_id=item_id, audio_end_ms=end_ms, content_index=content_index)
        event = self.conversation.truncate(command, T)
        assert isinstance(event, ItemTruncated)
        return event


def test_a_created_item_is_announced_where_it_stands() -> None:
    bench = Bench()
    bench.add(user("x"))
    events = bench.conversation.create(CreateItem(item=user("y")))
    assert events == [
        ItemAdded(previous_item_id="x", item=user("y")),
        ItemDone(previous_item_id="x", item=user("y")),
    ]
    assert bench.history.get("y").item == user("y")


def test_an_item_may_be_put_at_the_front() -> None:
    bench = Bench()
    bench.add(user("x"))
    events = bench.conversation.create(CreateItem(item=user("y"), previous_item_id="root"))
    assert events[0] == ItemAdded(previous_item_id=None, item=user("y"))


def test_an_item_without_an_id_gets_one_and_is_complete() -> None:
    added, _ = Bench().conversation.create(
        CreateItem(item=MessageItem(role="user", status="in_progress"))
    )
    assert isinstance(added, ItemAdded)
    assert added.item.id.startswith("item_")
    assert added.item.status == "completed"


def test_a_call_without_an_id_of_its_own_gets_one() -> None:
    bench = Bench()
    added, _ = bench.conversation.create(CreateItem(item=FunctionCallItem(name="look")))
    assert isinstance(added, ItemAdded)
    assert isinstance(added.item, FunctionCallItem)
    assert added.item.call_id.startswith("call_")
    assert len(added.item.call_id) <= 32


def test_the_output_of_a_function_finds_room_and_keeps_its_place() -> None:
    bench = Bench(max_items=3)
    for item in (user("a"), user("b"), FunctionCallItem(id="c", name="look", call_id="c1")):
        bench.add(item)
    output = FunctionCallOutputItem(id="d", call_id="c1", output="seen")
    deleted, added, _ = bench.conversation.create(CreateItem(item=output, previous_item_id="c"))
    assert deleted == ItemDeleted(item_id="a")
    assert isinstance(added, ItemAdded)
    assert (added.item.id, added.previous_item_id) == ("d", "c")


def test_an_output_whose_place_was_forgotten_for_it_stands_at_the_front() -> None:
    bench = Bench(max_items=2)
    bench.add(user("a"))
    bench.add(FunctionCallItem(id="c", name="look", call_id="c1"))
    output = FunctionCallOutputItem(id="d", call_id="c1", output="seen")
    _, added, _ = bench.conversation.create(CreateItem(item=output, previous_item_id="a"))
    assert isinstance(added, ItemAdded)
    assert added.previous_item_id is None


def test_audio_of_an_item_is_not_shown_again() -> None:
    content = (InputAudio(transcript="hello", audio=b"\x00\x00"),)
    added, _ = Bench().conversation.create(
        CreateItem(item=MessageItem(role="user", content=content))
    )
    assert isinstance(added, ItemAdded)
    assert isinstance(added.item, MessageItem)
    assert added.item.content == (InputAudio(transcript="hello"),)


def test_audio_without_words_is_refused() -> None:
    bench = Bench()
    item = MessageItem(role="user", content=(InputAudio(audio=b"\x00\x00"),))
    with pytest.raises(ProtocolError, match="not heard here"):
        bench.conversation.create(CreateItem(item=item))
    assert len(bench.history) == 0


def test_an_item_is_retrieved_as_it_was_said() -> None:
    bench = Bench()
    bench.speak()
    event = bench.conversation.retrieve(RetrieveItem(item_id="a"))
    assert event == ItemRetrieved(item=bench.history.get("a").item)


def test_an_answer_that_was_cut_is_retrieved_as_it_was_heard() -> None:
    bench = Bench()
    bench.speak()
    bench.truncate("a", 2300)
    event = bench.conversation.retrieve(RetrieveItem(item_id="a"))
    assert isinstance(event, ItemRetrieved)
    assert isinstance(event.item, MessageItem)
    assert event.item.content == (OutputAudio(transcript="one two"),)


def test_an_item_that_is_not_there_cannot_be_retrieved() -> None:
    with pytest.raises(ProtocolError) as refusal:
        Bench().conversation.retrieve(RetrieveItem(item_id="x"))
    assert refusal.value.code == "item_retrieve_invalid_item_id"


def test_a_deleted_item_is_gone() -> None:
    bench = Bench()
    bench.add(user("x"))
    assert bench.conversation.delete(DeleteItem(item_id="x")) == ItemDeleted(item_id="x")
    with pytest.raises(ProtocolError) as refusal:
        bench.conversation.delete(DeleteItem(item_id="x"))
    assert refusal.value.code == "item_delete_invalid_item_id"


def test_a_cut_is_answered_with_the_value_that_was_asked_and_taken_as_far_as_was_sent() -> None:
    bench = Bench()
    spoken = bench.speak(sent_ms=2000)
    assert bench.truncate("a", 10**12).audio_end_ms == 10**12
    assert spoken.cut_sample == 2000
    assert bench.history.get("a").interrupted


def test_cuts_only_shrink() -> None:
    bench = Bench()
    spoken = bench.speak()
    cuts = []
    for end_ms in (3000, 4500, 1500, 0):
        bench.truncate("a", end_ms)
        cuts.append((spoken.cut_sample, spoken.heard_text()))
    assert cuts == [
        (3000, "one two three"),
        (3000, "one two three"),
        (1500, "one"),
        (0, ""),
    ]


def test_an_answer_of_which_nothing_was_sent_yet_was_not_heard() -> None:
    bench = Bench()
    spoken = bench.speak(sent_ms=0, status="in_progress")
    bench.truncate("a", 500)
    assert spoken.cut_sample == 0


def test_an_answer_from_long_ago_stays_as_it_is() -> None:
    bench = Bench()
    spoken = bench.speak(sent_ms=0)
    bench.truncate("a", 500)
    assert spoken.cut_sample is None
    assert not bench.history.get("a").interrupted


def test_a_negative_position_is_refused() -> None:
    bench = Bench()
    bench.speak()
    with pytest.raises(ProtocolError, match="audio_end_ms is -1, the least is 0") as refusal:
        bench.truncate("a", -1)
    assert (refusal.value.code, refusal.value.param) == ("invalid_value", "audio_end_ms")


def test_an_item_of_speech_has_one_part() -> None:
    bench = Bench()
    bench.speak()
    with pytest.raises(ProtocolError, match="only part 0") as refusal:
        bench.truncate("a", 100, content_index=1)
    assert refusal.value.param == "content_index"


@pytest.mark.parametrize(
    ("item", "message"),
    [
        (user("x"), "item 'x' is a user message: only the assistant's speech can be cut"),
        (FunctionCallItem(id="x", name="f"), "tool call or its output: it has no audio"),
        (
            MessageItem(id="x", role="assistant", content=(OutputText(text="a"),)),
            "item 'x' is text: only speech can be truncated",
        ),
    ],
)
def test_what_is_not_the_assistants_speech_cannot_be_cut(item: Item, message: str) -> None:
    bench = Bench()
    bench.add(item)
    with pytest.raises(ProtocolError, match=message) as refusal:
        bench.truncate("x", 100)
    assert refusal.value.code == "item_truncate_invalid_item_id"


def test_a_committed_turn_becomes_an_item_at_the_end() -> None:
    bench = Bench()
    bench.add(user("x"))
    events = list(bench.conversation.commit_speech("y"))
    item = MessageItem(id="y", role="user", content=(InputAudio(),))
    assert events == [
        AudioCommitted(previous_item_id="x", item_id="y"),
        ItemAdded(previous_item_id="x", item=item),
        ItemDone(previous_item_id="x", item=item),
    ]


def test_a_turn_finds_room_at_the_expense_of_the_oldest() -> None:
    bench = Bench(max_items=1)
    bench.add(user("x"))
    events = list(bench.conversation.commit_speech("y"))
    assert events[:2] == [
        ItemDeleted(item_id="x"),
        AudioCommitted(previous_item_id=None, item_id="y"),
    ]


def test_what_was_seen_goes_into_turns_of_the_person_at_the_end_alone() -> None:
    history = History(10)
    sight = Sight(FrameSettings(per_s=60), history)
    playback = PlaybackLedger(RATE_HZ, Silencer())
    conversation = Conversation(history, playback, id_maker(random.Random(0)), sight)
    frame = ShowFrame(data=picture(50))

    def content(item_id: str) -> list[str]:
        item = history.get(item_id).item
        assert isinstance(item, MessageItem)
        return [str(part.__struct_config__.tag) for part in item.content]

    sight.show(frame, T)
    system = MessageItem(id="s", role="system", content=(InputText(text="x"),))
    conversation.create(CreateItem(item=system))
    conversation.create(CreateItem(item=user("first"), previous_item_id="root"))
    *_, consumed = conversation.create(CreateItem(item=user("last")))
    assert consumed == FramesConsumed(item_id="last", frames=1, frame_ids=())
    sight.show(frame, T)
    *_, said = conversation.commit_speech("spoken")
    assert said == FramesConsumed(item_id="spoken", frames=1, frame_ids=())
    assert [content(each) for each in ("s", "first", "last", "spoken")] == [
        ["input_text"],
        ["input_text"],
        ["input_text", "input_image"],
        ["input_audio", "input_image"],
    ]
    assert [view.text for view in history.view()] == ["hello", "x", "hello", None]


def test_a_turn_gets_its_words_later() -> None:
    bench = Bench()
    list(bench.conversation.commit_speech("y"))
    bench.conversation.set_transcript("y", "hello")
    assert bench.history.view()[0].text == "hello"


def test_a_turn_whose_words_are_lost_is_known_as_such() -> None:
    bench = Bench()
    list(bench.conversation.commit_speech("y"))
    bench.conversation.lose_transcript("y", "stage_failed")
    assert bench.history.last_turn_lost() == "stage_failed"
