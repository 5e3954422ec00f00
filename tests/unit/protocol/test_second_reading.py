from __future__ import annotations

import msgspec
import pytest

from duologue.protocol.commands import CreateItem, CreateResponse, ResponseParams
from duologue.protocol.items import (
    InputAudio,
    InputText,
    MessageItem,
    OutputAudio,
    OutputText,
)
from duologue.protocol.second_reading import read_leniently


def test_nulls_of_an_item_count_as_absent() -> None:
    message = b"""{"type":"conversation.item.create","event_id":"e","item":{"type":"message",
        "id":null,"object":null,"status":null,"role":"user",
        "content":[{"type":"input_audio","audio":"AQI=","transcript":null}]}}"""
    assert read_leniently(message, "conversation.item.create") == CreateItem(
        event_id="e",
        item=MessageItem(role="user", content=(InputAudio(audio=b"\1\2"),)),
    )


def test_nulls_inside_a_json_schema_are_values_and_stay() -> None:
    message = b"""{"type":"response.create","response":{"instructions":null,
        "tools":[{"type":"function","name":"f","parameters":{"default":null}}]}}"""
    command = read_leniently(message, "response.create")
    assert isinstance(command, CreateResponse)
    assert command.response
    assert command.response.tools
    assert command.response.tools[0].parameters == {"default": None}


@pytest.mark.parametrize(
    ("message", "event_type"),
    [(b'{"type":"session.update","session":{"type":null}}', "session.update"), (b"{}", None)],
)
def test_other_types_are_left_to_the_first_reading(message: bytes, event_type: str | None) -> None:
    assert read_leniently(message, event_type) is None


@pytest.mark.parametrize(
    ("message", "event_type"),
    [
        (b'{"type":"response.create","response":5}', "response.create"),
        (b'{"type":"response.create","response":', "response.create"),
        (b'{"type":"conversation.item.create","item":null}', "conversation.item.create"),
        (
            b'{"type":"conversation.item.create","item":{"type":"message","role":"user",'
            b'"content":[{"type":{}},7]}}',
            "conversation.item.create",
        ),
        (b"[" * 100_000, "response.create"),
    ],
)
def test_what_stays_unreadable_says_why(message: bytes, event_type: str) -> None:
    with pytest.raises((msgspec.MsgspecError, RecursionError)):
        read_leniently(message, event_type)


@pytest.mark.parametrize(
    ("role", "content"),
    [
        ("assistant", (OutputText(text="a"), OutputAudio(transcript="b"))),
        ("user", (InputText(text="a"), InputAudio(transcript="b"))),
    ],
)
def test_parts_may_have_the_names_of_the_beta(role: str, content: tuple[object, ...]) -> None:
    parts = b'[{"type":"text","text":"a"},{"type":"audio","transcript":"b"}]'
    item = b'{"type":"message","role":"%b","content":%b}' % (role.encode(), parts)
    message = b'{"type":"conversation.item.create","item":%b}' % item
    command = read_leniently(message, "conversation.item.create")
    assert isinstance(command, CreateItem)
    assert isinstance(command.item, MessageItem)
    assert command.item.content == content


def test_nulls_deeper_than_any_field_of_ours_are_left_alone() -> None:
    deep = b'{"a":' * 9 + b"null" + b"}" * 9
    message = b'{"type":"response.create","response":{"instructions":null,"x":%b}}' % deep
    assert read_leniently(message, "response.create") == CreateResponse(response=ResponseParams())
