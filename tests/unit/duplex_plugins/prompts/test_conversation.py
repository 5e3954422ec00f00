from __future__ import annotations

from collections.abc import Sequence

from duologue.duplex_plugins.contract import ItemView
from duologue.duplex_plugins.prompts.conversation import (
    INTERRUPTED,
    PENDING,
    SILENCE,
    joined,
    unanswered,
)
from duologue.engines.payloads import ChatMessage, ToolCall


def conversation(*texts: str | None) -> tuple[ItemView, ...]:
    """The person first, then in turns."""
    return tuple(
        ItemView(id=str(index), role="user" if index % 2 == 0 else "assistant", text=text)
        for index, text in enumerate(texts)
    )


def said(messages: Sequence[ChatMessage]) -> list[str]:
    return [f"{message.role}: {message.content}" for message in messages]


def call(number: int) -> ItemView:
    return ItemView(
        id=f"c{number}", role="assistant", text="", call=ToolCall(f"c{number}", "look", "{}")
    )


def output(number: int, text: str | None = "seen") -> ItemView:
    return ItemView(id=f"o{number}", role="tool", text=text, call_id=f"c{number}")


def test_an_interrupted_answer_holds_the_heard_words_and_says_so() -> None:
    view = (
        *conversation("Tell me a story."),
        ItemView(id="a", role="assistant", text="Once upon a", interrupted=True),
        ItemView(id="b", role="user", text="Stop."),
    )
    assert said(joined(view)) == [
        "user: Tell me a story.",
        f"assistant: Once upon a{INTERRUPTED}",
        "user: Stop.",
    ]


def test_turns_that_follow_each_other_are_one_message() -> None:
    view = (
        ItemView(id="a", role="user", text="I need"),
        ItemView(id="b", role="assistant", text="", interrupted=True),
        ItemView(id="c", role="user", text="a taxi."),
    )
    assert said(joined(view)) == ["user: I need a taxi."]


def test_what_is_not_known_or_empty_is_left_out() -> None:
    view = conversation("Hi", "Hello!", None, "Yes?", " ")
    assert said(joined(view)) == [
        "user: Hi",
        "assistant: Hello! Yes?",
    ]


def test_calls_stand_in_the_message_before_them_and_outputs_follow() -> None:
    view = (*conversation("Look!", "One moment."), call(1), call(2), output(1), output(2, None))
    messages = joined(view)
    assert messages == [
        ChatMessage("user", "Look!"),
        ChatMessage("assistant", "One moment.", calls=(call(1).call, call(2).call)),
        ChatMessage("tool", "seen", call_id="c1"),
        ChatMessage("tool", PENDING, call_id="c2"),
    ]


def test_words_after_a_call_are_not_mixed_with_it() -> None:
    view = (*conversation("Look!"), call(1), output(1), *conversation("Well?")[:1], call(2))
    messages = joined((*view, output(2)))
    assert [message.role for message in messages] == [
        "user",
        "assistant",
        "tool",
        "user",
        "assistant",
        "tool",
    ]


def test_pictures_of_the_person_go_along() -> None:
    seen = ItemView(id="a", role="user", text="", images=("data:image/png;base64,AA==",))
    words = ItemView(id="b", role="user", text="What is it?")
    assert joined((seen, words)) == [ChatMessage("user", "What is it?", images=seen.images)]


def test_a_silence_that_is_to_be_answered_stands_in_the_prompt_for_itself() -> None:
    silent = ItemView(id="s", role="user", text="", silence=True)
    assert said(joined((*conversation("Hello."), silent)))[-1] == (f"user: Hello. {SILENCE}")


def test_the_persons_turns_since_the_last_answer_are_unanswered() -> None:
    view = (
        *conversation("One?", "Answer.", "Two?"),
        ItemView(id="x", role="assistant", text=""),
        ItemView(id="y", role="system", text="note"),
        ItemView(id="z", role="user", text=None),
    )
    assert [item.id for item in unanswered(view)] == ["2", "z"]
    assert unanswered(conversation("One?", "Answer.")) == []


def test_a_model_that_hears_gets_recordings_in_place_of_their_words() -> None:
    first, second, third = (
        ItemView(id=name, role="user", text=text)
        for name, text in (("a", "Said."), ("b", None), ("c", "Typed."))
    )
    assert joined((first, second, third), {"a": b"1", "b": b"2"}) == [
        ChatMessage("user", "Typed.", recordings=(b"1", b"2"))
    ]
    assert joined((second,)) == []
