from __future__ import annotations

from typing import Any, get_args

import msgspec
import pytest

from duologue.protocol.commands import Command, CreateResponse, RealtimeCommand, ResponseParams
from duologue.protocol.json_codec import decode_command

GA_CLIENT_EVENTS = {
    "session.update",
    "input_audio_buffer.append",
    "input_audio_buffer.commit",
    "input_audio_buffer.clear",
    "output_audio_buffer.clear",
    "conversation.item.create",
    "conversation.item.retrieve",
    "conversation.item.truncate",
    "conversation.item.delete",
    "response.create",
    "response.cancel",
}


def test_every_client_event_of_the_dialect_is_a_command() -> None:
    tags = [member.__struct_config__.tag for member in get_args(RealtimeCommand)]
    assert sorted(tags) == sorted(GA_CLIENT_EVENTS)


@pytest.mark.parametrize("command", get_args(Command))
def test_every_command_may_carry_an_event_id_and_cannot_be_changed(command: Any) -> None:
    assert command.__struct_defaults__[0] is None or "event_id" in command.__struct_fields__
    assert command.__struct_config__.frozen


def test_what_is_not_given_is_not_written() -> None:
    assert msgspec.json.encode(CreateResponse(response=ResponseParams())) == (
        b'{"type":"response.create","response":{}}'
    )


def test_what_stock_clients_put_into_a_request_is_taken_without_effect() -> None:
    message = (
        b'{"type":"response.create","response":{"prompt":{"id":"p","version":"1"},'
        b'"reasoning":{"effort":"low"},"tracing":"auto","a_key_of_tomorrow":[1],'
        b'"metadata":null,"tools":null,"max_output_tokens":"inf"}}'
    )
    assert decode_command(message) == CreateResponse(
        response=ResponseParams(max_output_tokens="inf")
    )
