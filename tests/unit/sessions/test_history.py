"""The items of a conversation, and of the assistant's speech only what was heard."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duologue.core.errors import LimitExceeded, ProtocolError
from duologue.duplex_plugins.contract import ItemView
from duologue.engines.payloads import SpeechMark
from duologue.protocol.items import (
    FunctionCallItem,
    FunctionCallOutputItem,
    InputAudio,
    InputImage,
    InputText,
    Item,
    MessageItem,
    OutputAudio,
    OutputText,
)
from duologue.sessions.history import (
    ROOT,
    Entry,
    History,
    Spoken,
    check_can_be_read,
    view_of,
)

RATE_HZ = 1000
"""One sample is a millisecond."""

TEXT = "one two three four five six"


def spoken(
    text: str = TEXT,
    samples: int = 6000,
    marks: tuple[SpeechMark, ...] = (),
    *,
    complete: bool = True,
) -> Spoken:
    return Spoken("r", RATE_HZ, text, list(marks), samples, complete)


def user(item_id: str, text: str = "hello") -> MessageItem:
    return MessageItem(id=item_id, role="user", content=(InputText(text=text),))


def speech_of_user(item_id: str, transcript: str | None = None) -> MessageItem:
    return MessageItem(id=item_id, role="user", content=(InputAudio(transcript=transcript),))


def ids(history: History) -> list[str]:
    return [view.id for view in history.view()]


# What was heard


def test_an_answer_that_was_not_cut_was_heard_to_its_end() -> None:
    assert spoken().heard_text() == TEXT


def test_an_answer_that_was_cut_ends_with_the_last_whole_word() -> None:
    answer = spoken()
    answer.cut_sample = 2300
    assert answer.heard_text() == "one two"


def test_at_a_mark_the_text_is_exact() -> None:
    answer = spoken(marks=(SpeechMark(7, 1000), SpeechMark(13, 5000)))
    assert answer.text_until(1000) == "one two"
    assert answer.text_until(5000) == "one two three"
    assert answer.text_until(6000) == TEXT


def test_between_marks_words_are_interpolated() -> None:
    answer = spoken(marks=(SpeechMark(7, 1000), SpeechMark(len(TEXT), 3000)))
    assert answer.text_until(500) == "one"
    assert answer.text_until(1999) == "one two three"
    assert answer.text_until(2999) == "one two three four five"


def test_before_the_first_word_nothing_was_heard() -> None:
    assert spoken().text_until(0) == ""
    assert spoken(marks=(SpeechMark(7, 1000),)).text_until(10) == ""


def test_words_without_audio_so_far_were_not_heard() -> None:
    answer = spoken(samples=1000, marks=(SpeechMark(7, 1000),), complete=False)
    assert answer.text_until(1000) == "one two"
    answer.complete = True
    assert answer.text_until(1000) == TEXT


def test_without_marks_nobody_is_taken_to_speak_faster_than_people_do() -> None:
    answer = spoken(samples=200, complete=False)
    assert answer.text_until(200) == "one"
    assert answer.text_until(100) == ""


def test_a_word_that_is_cut_is_not_heard_even_at_the_border_of_marks() -> None:
    answer = spoken("Hello there. Fine", marks=(SpeechMark(12, 1000),), samples=2000)
    assert answer.text_until(1400) == "Hello there."


def test_an_answer_without_audio_was_not_heard() -> None:
    assert spoken(samples=0, complete=False).text_until(0) == ""


@st.composite
def answers(draw: st.DrawFn) -> Spoken:
    words = draw(st.lists(st.text("abcé,", min_size=1, max_size=8), max_size=12))
    text = " ".join(words)
    places = draw(st.lists(st.tuples(st.integers(0, 90), st.integers(0, 9000)), max_size=8))
    ends = sorted(end for end, _ in places)
    samples = sorted(sample for _, sample in places)
    marks = tuple(SpeechMark(end, at) for end, at in zip(ends, samples, strict=True))
    return spoken(text, draw(st.integers(0, 9000)), marks, complete=draw(st.booleans()))


@given(answer=answers(), cut=st.one_of(st.none(), st.integers(0, 9000)))
def test_what_was_heard_is_always_a_beginning_of_the_text_in_whole_words(
    answer: Spoken, cut: int | None
) -> None:
    answer.cut_sample = cut
    heard = answer.heard_text()
    assert answer.text.startswith(heard)
    at_a_mark = any(
        answer.text[: mark.text_end].rstrip() == heard.rstrip() for mark in answer.marks
    )
    rest = answer.text[len(heard) :]
    assert at_a_mark or not heard or not rest or rest[0] == " "


@given(answer=answers(), places=st.tuples(st.integers(0, 9000), st.integers(0, 9000)))
def test_more_audio_never_means_less_text(answer: Spoken, places: tuple[int, int]) -> None:
    earlier, later = sorted(places)
    assert len(answer.text_until(earlier)) <= len(answer.text_until(later))


# Items


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
    history.add(FunctionCallItem(id="b", name="f"))
    history.set_user_transcript("b", "hello")
    assert history.view() == ()


# What a prompt sees


@pytest.mark.parametrize(
    "item",
    [
        FunctionCallItem(id="a", name="f"),
        FunctionCallOutputItem(id="a", call_id="c", output="1"),
        MessageItem(id="a", role="assistant", status="in_progress"),
    ],
    ids=lambda item: type(item).__name__,
)
def test_some_items_have_no_place_in_a_prompt(item: Item) -> None:
    assert view_of(Entry(item)) is None


def test_a_prompt_sees_all_text_of_a_message() -> None:
    content = (InputText(text="a"), InputImage(image_url="data:"), InputText(text=""))
    said = (OutputText(text="b"), OutputAudio(transcript="c"), OutputAudio())
    history = History(10)
    history.add(MessageItem(id="1", role="system", content=content))
    history.add(MessageItem(id="2", role="assistant", content=said))
    assert [(view.role, view.text) for view in history.view()] == [
        ("system", "a"),
        ("assistant", "b c"),
    ]


def test_a_prompt_sees_of_the_assistants_speech_what_was_heard() -> None:
    item = MessageItem(id="a", role="assistant", content=(OutputAudio(transcript=TEXT),))
    entry = Entry(item, spoken(), interrupted=True)
    assert entry.spoken is not None
    entry.spoken.cut_sample = 2300
    assert view_of(entry) == ItemView(id="a", role="assistant", text="one two", interrupted=True)


def test_an_answer_of_which_nothing_was_heard_is_no_part_of_a_prompt() -> None:
    item = MessageItem(id="a", role="assistant", content=(OutputAudio(transcript=TEXT),))
    entry = Entry(item, spoken())
    assert entry.spoken is not None
    entry.spoken.cut_sample = 0
    assert view_of(entry) is None


def test_two_equal_items_are_still_two() -> None:
    history = History(10)
    first, second = history.add(user("a")), history.add(user("b"))
    second.item = msgspec.structs.replace(second.item, id="a")
    assert first.item == second.item
    assert history.previous_id("b") == "a"


def test_speech_without_words_is_refused_because_nobody_will_transcribe_it() -> None:
    content = (InputText(text="a"), InputAudio(audio=b"\x00\x00"))
    with pytest.raises(ProtocolError, match="append it to the input audio buffer") as refusal:
        check_can_be_read(MessageItem(role="user", content=content), "item")
    assert (refusal.value.code, refusal.value.param) == (
        "unsupported",
        "item.content[1].transcript",
    )


@pytest.mark.parametrize(
    "item",
    [
        speech_of_user("a", "hello"),
        user("a"),
        FunctionCallItem(name="f"),
        MessageItem(role="assistant", content=(OutputAudio(),)),
    ],
)
def test_what_has_words_or_needs_none_is_taken(item: Item) -> None:
    check_can_be_read(item, "item")


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
