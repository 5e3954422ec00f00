"""The items of a conversation, and of the assistant's speech only what was heard."""

from __future__ import annotations

import msgspec
import pytest

from duologue.core.errors import LimitExceeded, ProtocolError
from duologue.duplex_plugins.contract import ItemView
from duologue.protocol.items import (
    FunctionCallItem,
    FunctionCallOutputItem,
    InputAudio,
    InputImage,
    InputText,
    Item,
    MessageItem,
)
from duologue.sessions.history.entry import Spoken
from duologue.sessions.history.history import ROOT, History


def user(item_id: str, text: str = "hello") -> MessageItem:
    return MessageItem(id=item_id, role="user", content=(InputText(text=text),))


def speech_of_user(item_id: str, transcript: str | None = None) -> MessageItem:
    return MessageItem(id=item_id, role="user", content=(InputAudio(transcript=transcript),))


def ids(history: History) -> list[str]:
    return [view.id for view in history.view()]


def test_items_stand_where_they_were_put() -> None:
    history = History(10)
    history.add(user("b"))
    history.add(user("d"))
    history.add(user("a"), ROOT)
    history.add(user("c"), "b")
    assert ids(history) == ["a", "b", "c", "d"]
    assert [history.previous_id(item) for item in "abcd"] == [None, "a", "b", "c"]
    assert history.last_id == "d"
    assert len(history) == 4
    assert "c" in history


def test_parts_are_added_to_a_message_and_taken_out_again() -> None:
    history = History(10, max_bytes=100)
    history.add(user("a"))
    assert history.room_bytes == 95
    before = history.changes
    history.add_parts("a", (InputImage(image_url="data:image/"), InputImage(image_url="data:2")))
    assert history.view()[0].images == ("data:image/", "data:2")
    assert (history.held_bytes, history.count_held(), history.room_bytes) == (22, 22, 78)
    history.drop_last_parts("a", 1)
    assert history.view()[0].images == ("data:image/",)
    assert (history.held_bytes, history.count_held()) == (16, 16)
    history.drop_last_parts("gone", 1)
    assert history.changes == before + 2
    history.delete("a")
    assert history.held_bytes == 0


def test_an_empty_conversation_has_no_last_item() -> None:
    assert History(10).last_id is None


def test_an_id_is_taken_once() -> None:
    history = History(10)
    history.add(user("a", "first"))
    with pytest.raises(ProtocolError, match="already has an item 'a'") as refusal:
        history.add(user("a", "second"))
    assert (refusal.value.code, refusal.value.param) == ("item_create_duplicate_item_id", "item.id")
    assert [view.text for view in history.view()] == ["first"]


def test_nothing_can_stand_after_an_item_that_is_not_there() -> None:
    history = History(10)
    with pytest.raises(ProtocolError, match="no item 'x' to insert after") as refusal:
        history.add(user("a"), "x")
    assert refusal.value.code == "item_create_invalid_previous_item_id"
    assert len(history) == 0
    assert "a" not in history


def test_a_full_conversation_says_so() -> None:
    history = History(2)
    history.add(user("a"))
    history.add(user("b"))
    with pytest.raises(LimitExceeded, match="has 2 items, which is the limit") as refusal:
        history.add(user("c"))
    assert refusal.value.code == "conversation_full"


def test_room_is_made_by_forgetting_the_oldest() -> None:
    history = History(2)
    assert history.make_room() == []
    history.add(user("a"))
    history.add(user("b"))
    assert history.make_room() == ["a"]
    history.add(user("c"))
    assert ids(history) == ["b", "c"]
    assert "a" not in history


def test_a_deleted_item_is_gone_and_its_id_is_free() -> None:
    history = History(2)
    history.add(user("a"))
    history.delete("a")
    assert len(history) == 0
    history.add(user("a"))
    with pytest.raises(ProtocolError) as refusal:
        history.delete("b")
    assert refusal.value.code == "item_delete_invalid_item_id"


def test_an_unknown_item_is_refused_with_the_code_of_the_command() -> None:
    with pytest.raises(ProtocolError, match="no item 'x'") as refusal:
        History(2).get("x", code="item_retrieve_invalid_item_id")
    assert (refusal.value.code, refusal.value.param) == ("item_retrieve_invalid_item_id", "item_id")


def test_a_long_id_is_not_repeated_whole() -> None:
    with pytest.raises(ProtocolError) as refusal:
        History(2).get("x" * 1000)
    assert len(refusal.value.message) < 120


def test_a_transcript_fills_in_what_the_person_said() -> None:
    history = History(10)
    history.add(speech_of_user("a"))
    assert history.view() == (ItemView(id="a", role="user", text=None),)
    history.set_user_transcript("a", "hello")
    assert history.view() == (ItemView(id="a", role="user", text="hello"),)


def test_a_transcript_leaves_written_parts_alone() -> None:
    history = History(10)
    content = (InputText(text="look:"), InputAudio())
    history.add(MessageItem(id="a", role="user", content=content))
    history.set_user_transcript("a", "here")
    assert history.view()[0].text == "look: here"


def test_a_transcript_of_an_item_that_is_gone_is_dropped() -> None:
    history = History(10)
    history.set_user_transcript("a", "hello")
    history.add(FunctionCallItem(id="b", name="f", status="in_progress"))
    history.set_user_transcript("b", "hello")
    assert history.view() == ()


def test_two_equal_items_are_still_two() -> None:
    history = History(10)
    first, second = history.add(user("a")), history.add(user("b"))
    second.item = msgspec.structs.replace(second.item, id="a")
    assert first.item == second.item
    assert history.previous_id("b") == "a"


def test_what_clients_put_in_is_bounded_together_and_freed_with_its_items() -> None:
    history = History(10, max_bytes=20)
    history.add(user("a", "x" * 12))
    with pytest.raises(LimitExceeded, match="would hold 24 bytes, the limit is 20") as refusal:
        history.add(user("b", "x" * 12))
    assert refusal.value.code == "conversation_full"
    assert "b" not in history
    history.delete("a")
    history.add(user("b", "x" * 12))


def test_whenever_a_prompt_would_be_another_one_it_is_noted() -> None:
    history = History(1)
    seen = [history.changes]

    def changed() -> bool:
        seen.append(history.changes)
        return seen[-1] > seen[-2]

    history.add(speech_of_user("a"))
    assert changed()
    history.set_user_transcript("a", "hello")
    assert changed()
    history.make_room()
    assert changed()
    history.add(user("b"))
    assert changed()
    history.delete("b")
    assert changed()
    history.touch()
    assert changed()
    history.view()
    assert not changed()


def test_words_that_are_lost_are_known_to_be_lost() -> None:
    history = History(10)
    assert history.last_turn_lost() == ""
    history.add(speech_of_user("a"))
    history.lose_user_transcript("a", "stage_failed")
    history.add(MessageItem(id="b", role="assistant"))
    history.add(FunctionCallItem(id="c", name="f"))
    assert history.last_turn_lost() == "stage_failed"
    assert history.view()[0].text == ""
    history.add(user("d"))
    assert history.last_turn_lost() == ""
    history.lose_user_transcript("gone", "stage_failed")


# Function calls and their outputs


def call(number: int) -> FunctionCallItem:
    return FunctionCallItem(id=f"call {number}", name="f", call_id=f"c{number}")


def output(number: int) -> FunctionCallOutputItem:
    return FunctionCallOutputItem(id=f"output {number}", call_id=f"c{number}", output="1")


@pytest.mark.parametrize(
    ("there", "new", "code"),
    [
        ([], output(1), "tool_call_not_found"),
        (
            [call(1), output(1)],
            FunctionCallOutputItem(id="x", call_id="c1", output="2"),
            "tool_call_already_answered",
        ),
        ([call(1)], FunctionCallItem(id="x", name="g", call_id="c1"), "invalid_value"),
    ],
)
def test_a_call_has_one_output_and_an_output_has_a_call(
    there: list[Item], new: Item, code: str
) -> None:
    history = History(10)
    for item in there:
        history.add(item)
    before = ids(history)
    with pytest.raises(ProtocolError) as refusal:
        history.add(new)
    assert (refusal.value.code, refusal.value.param) == (code, "item.call_id")
    assert ids(history) == before


def test_an_output_that_was_deleted_can_be_given_again() -> None:
    history = History(10)
    history.add(call(1))
    history.add(output(1))
    history.delete("output 1")
    history.add(output(1))
    assert [view.id for view in history.view()] == ["call 1", "output 1"]


@pytest.mark.parametrize(
    "order", [(call(1), output(1), user("a")), (user("a"), call(1), output(1))]
)
def test_a_call_and_its_output_are_forgotten_together(order: tuple[Item, ...]) -> None:
    history = History(3)
    for item in order:
        history.add(item)
    forgotten = history.make_room()
    if isinstance(order[0], FunctionCallItem):
        assert forgotten == ["call 1", "output 1"]
    else:
        assert forgotten == ["a"]
        assert history.make_room() == []
        history.add(user("b"))
        assert history.make_room() == ["call 1", "output 1"]


def test_a_call_whose_output_is_still_to_come_is_forgotten_last() -> None:
    history = History(2)
    history.add(call(1))
    history.add(user("a"))
    assert history.make_room() == ["a"]
    history.add(call(2))
    assert history.make_room() == ["call 1"]
    with pytest.raises(ProtocolError) as refusal:
        history.add(output(1))
    assert refusal.value.code == "tool_call_not_found"


def test_room_for_an_output_is_not_made_of_its_call() -> None:
    history = History(2)
    history.add(call(1))
    history.add(call(2))
    history.check(output(2), None)
    assert history.make_room(output(2)) == ["call 1"]
    history.add(output(2))
    tiny = History(1)
    tiny.add(call(1))
    assert tiny.make_room(output(1)) == []


def test_a_deleted_item_is_told_from_one_that_never_was() -> None:
    history = History(10)
    history.add(user("a"))
    history.delete("a")
    with pytest.raises(ProtocolError, match="item 'a' was deleted"):
        history.get("a")
    with pytest.raises(ProtocolError, match="the conversation has no item 'b'"):
        history.get("b")


def test_what_was_heard_of_a_response_is_what_was_heard_of_its_messages() -> None:
    history = History(10)
    for number, text in enumerate(("One moment.", " It is sunny.")):
        entry = history.add(MessageItem(id=str(number), role="assistant"))
        entry.spoken = Spoken("r", 1000, text, samples=1000, complete=True)
    history.add(user("a"))
    assert history.heard_of("r") == "One moment. It is sunny."
    history.get("1").spoken.cut_sample = 0  # type: ignore[union-attr]
    assert history.heard_of("r") == "One moment."
    assert history.heard_of("another") == ""


def test_answers_are_found_by_their_response_and_the_latest_one_without() -> None:
    history = History(10)
    assert history.spoken_in(None) == []
    for number, response_id in enumerate(("r1", "r2", "r2")):
        entry = history.add(MessageItem(id=f"i{number}", role="assistant"))
        entry.spoken = Spoken(response_id, 1000)
        history.add(user(f"u{number}"))
    found = [[e.item.id for e in history.spoken_in(name)] for name in ("r1", "r2", None, "r3")]
    assert found == [["i0"], ["i1", "i2"], ["i1", "i2"], []]


def test_a_position_in_a_response_counts_the_speech_of_its_items_before() -> None:
    history = History(10)
    for number, response_id in enumerate(("r", "s", "r", "r")):
        entry = history.add(MessageItem(id=str(number), role="assistant"))
        entry.spoken = Spoken(response_id, 1000, samples=1000 + number)
    assert [history.samples_before(history.get(id_)) for id_ in "0123"] == [0, 0, 1000, 2002]
