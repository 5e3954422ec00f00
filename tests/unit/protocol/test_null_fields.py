from __future__ import annotations

import pytest

from duologue.protocol.commands import CreateItem, CreateResponse, ResponseParams
from duologue.protocol.items import InputAudio, MessageItem
from duologue.protocol.null_fields import decode_without_nulls


def test_nulls_of_an_item_count_as_absent() -> None:
    message = b"""{"type":"conversation.item.create","event_id":"e","item":{"type":"message",
        "id":null,"object":null,"status":null,"role":"user",
        "content":[{"type":"input_audio","audio":"AQI=","transcript":null}]}}"""
    assert decode_without_nulls(message, "conversation.item.create") == CreateItem(
        event_id="e",
        item=MessageItem(role="user", content=(InputAudio(audio=b"\1\2"),)),
    )


def test_nulls_inside_a_json_schema_are_values_and_stay() -> None:
    message = b"""{"type":"response.create","response":{"instructions":null,
        "tools":[{"type":"function","name":"f","parameters":{"default":null}}]}}"""
    command = decode_without_nulls(message, "response.create")
    assert isinstance(command, CreateResponse)
    assert command.response
    assert command.response.tools
    assert command.response.tools[0].parameters == {"default": None}


@pytest.mark.parametrize(
    ("message", "event_type"),
    [
        (b'{"type":"session.update","session":{"type":null}}', "session.update"),
        (b'{"type":"response.create","response":5}', "response.create"),
        (b'{"type":"response.create","response":', "response.create"),
        (b'{"type":"conversation.item.create","item":null}', "conversation.item.create"),
        (b"[" * 100_000, "response.create"),
        (b"{}", None),
    ],
)
def test_what_stays_unreadable_is_left_to_the_first_reading(
    message: bytes, event_type: str | None
) -> None:
    assert decode_without_nulls(message, event_type) is None


def test_nulls_deeper_than_any_field_of_ours_are_left_alone() -> None:
    deep = b'{"a":' * 9 + b"null" + b"}" * 9
    message = b'{"type":"response.create","response":{"instructions":null,"x":%b}}' % deep
    assert decode_without_nulls(message, "response.create") == CreateResponse(
        response=ResponseParams()
    )
