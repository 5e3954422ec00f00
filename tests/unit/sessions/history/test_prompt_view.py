"""Items as a prompt should have them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duologue.core.errors import ProtocolError
from duologue.duplex_plugins.contract import ItemView
from duologue.engines.payloads import ToolCall
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
from duologue.sessions.history.entry import Entry, Spoken
from duologue.sessions.history.prompt_view import check_can_be_read, prompt_view, view_of

TEXT = "one two three four five six"


def spoken() -> Spoken:
    """Speech of six seconds at a sample a millisecond."""
    return Spoken("r", 1000, TEXT, [], 6000, complete=True)


@pytest.mark.parametrize(
    "item",
    [
        FunctionCallItem(id="a", name="f", status="incomplete"),
        FunctionCallItem(id="a", name="f", status="in_progress"),
        MessageItem(id="a", role="assistant", status="in_progress"),
    ],
    ids=lambda item: f"{type(item).__name__} {item.status}",
)
def test_some_items_have_no_place_in_a_prompt(item: Item) -> None:
    assert view_of(Entry(item)) is None
    assert prompt_view([Entry(item)]) == ()


def test_a_prompt_sees_all_text_of_a_message() -> None:
    content = (InputText(text="a"), InputImage(image_url="data:"), InputText(text=""))
    said = (OutputText(text="b"), OutputAudio(transcript="c"), OutputAudio())
    views = prompt_view(
        [
            Entry(MessageItem(id="1", role="system", content=content)),
            Entry(MessageItem(id="2", role="assistant", content=said)),
        ]
    )
    assert [(view.role, view.text, view.images) for view in views] == [
        ("system", "a", ("data:",)),
        ("assistant", "b c", ()),
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


def test_speech_without_words_is_refused_because_nobody_will_transcribe_it() -> None:
    content = (InputText(text="a"), InputAudio(audio=b"\x00\x00"))
    with pytest.raises(ProtocolError, match="append it to the input audio buffer") as refusal:
        check_can_be_read(MessageItem(role="user", content=content), "item", sees=False)
    assert (refusal.value.code, refusal.value.param) == (
        "unsupported",
        "item.content[1].transcript",
    )


@pytest.mark.parametrize(
    "item",
    [
        MessageItem(role="user", content=(InputAudio(transcript="hello"),)),
        MessageItem(role="user", content=(InputText(text="hello"),)),
        FunctionCallItem(name="f"),
        MessageItem(role="assistant", content=(OutputAudio(),)),
    ],
)
def test_what_has_words_or_needs_none_is_taken(item: Item) -> None:
    check_can_be_read(item, "item", sees=False)


def test_a_picture_is_refused_where_nobody_sees_it() -> None:
    picture = InputImage(image_url="data:image/png;base64,AA==")
    item = MessageItem(role="user", content=(InputText(text="look"), picture))
    check_can_be_read(item, "item", sees=True)
    with pytest.raises(ProtocolError, match="does not see") as refusal:
        check_can_be_read(item, "item", sees=False)
    assert (refusal.value.code, refusal.value.param) == ("unsupported", "item.content[1]")


# Function calls and their outputs


def items(text: str) -> list[Entry]:
    """Make a conversation: ``c1`` is a call, ``o1`` its output, all else the person's words."""
    entries: list[Entry] = []
    for word in text.split():
        item: Item
        if word[0] == "c":
            item = FunctionCallItem(id=word, name="f", call_id=word[1:], arguments="{}")
        elif word[0] == "o":
            item = FunctionCallOutputItem(id=word, call_id=word[1:], output="done")
        else:
            item = MessageItem(id=word, role="user", content=(InputText(text=word),))
        entries.append(Entry(item))
    return entries


def shown(text: str) -> str:
    """Return the ids in the view; an output that is still to come is ``?`` and its call."""
    views = prompt_view(items(text))
    return " ".join(
        f"?{view.call_id}" if view.role == "tool" and view.text is None else view.id
        for view in views
    )


@pytest.mark.parametrize(
    ("conversation", "view"),
    [
        ("u c1 o1 v", "u c1 o1 v"),
        ("u c1 c2 o1 o2", "u c1 c2 o1 o2"),
        ("u c1 c2 o2 o1", "u c1 c2 o1 o2"),
        ("u c1 o1 c2 o2", "u c1 o1 c2 o2"),
        ("u c1 v o1", "u v c1 o1"),
        ("u c1 c2 o1 v o2", "u c1 o1 v c2 o2"),
        ("u c1 v", "u c1 ?1 v"),
        ("u c1 c2 v o2", "u c1 ?1 v c2 o2"),
        ("u o1 v", "u v"),
        ("o1 c1", "c1 o1"),
    ],
)
def test_a_call_stands_before_its_output_and_neither_stands_alone(
    conversation: str, view: str
) -> None:
    assert shown(conversation) == view


def test_a_call_and_its_output_are_shown_whole() -> None:
    assert prompt_view(items("c1 o1")) == (
        ItemView(id="c1", role="assistant", text="", call=ToolCall("1", "f", "{}")),
        ItemView(id="o1", role="tool", text="done", call_id="1"),
    )


def test_the_output_of_a_call_that_was_cut_off_is_left_out() -> None:
    cut = FunctionCallItem(id="c1", name="f", call_id="1", status="incomplete")
    assert prompt_view([Entry(cut), *items("o1 u")])[0].id == "u"


@given(order=st.permutations(["c1", "c2", "c3", "o1", "o2", "o3", "u", "v"]))
def test_in_any_order_each_call_has_its_output_right_behind(order: list[str]) -> None:
    views = prompt_view(items(" ".join(order)))
    assert [view.id for view in views if view.role == "user"] == [w for w in order if w in "uv"]
    assert sorted(view.id for view in views if view.role != "user") == [
        "c1",
        "c2",
        "c3",
        "o1",
        "o2",
        "o3",
    ]
    waiting: list[str] = []
    for view in views:
        if view.call is not None:
            waiting.append(view.call.call_id)
        elif view.role == "tool":
            waiting.remove(view.call_id)
        else:
            assert waiting == []
    assert waiting == []
