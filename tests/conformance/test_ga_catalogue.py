"""The whole catalogue of GA, as OpenAI's SDK declares it: what is sent, what is taken, what is not.

A version of the SDK with more events fails here, and whoever adds them decides.
"""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.types.realtime import RealtimeClientEvent

from duologue.core.errors import ClientError
from duologue.protocol.commands import RealtimeCommand
from duologue.protocol.events import RealtimeEvent
from duologue.protocol.json_codec import decode_command, encode_event
from tests.conformance.sdk_schema import GA
from tests.unit.protocol.messages import of

NOT_SENT = {
    "conversation.created": "says nothing, and no client waits for it",
    "conversation.item.created": "the name of the beta; GA has added and done",
    "conversation.item.input_audio_transcription.segment": "nobody tells speakers apart",
    "input_audio_buffer.dtmf_event_received": "keys come with calls over SIP, which there are not",
    "mcp_list_tools.completed": "MCP is refused",
    "mcp_list_tools.failed": "MCP is refused",
    "mcp_list_tools.in_progress": "MCP is refused",
    "response.mcp_call.completed": "MCP is refused",
    "response.mcp_call.failed": "MCP is refused",
    "response.mcp_call.in_progress": "MCP is refused",
    "response.mcp_call_arguments.delta": "MCP is refused",
    "response.mcp_call_arguments.done": "MCP is refused",
}


AS_ASKED_FOR = {"session.created", "session.updated", "response.created", "response.done"}
"""They show formats and voices, of which a client may ask for more than the SDK knows; what stock
clients are shown is checked with must-haves 3 to 9 and 16."""


def names(union: object) -> set[str]:
    return {member.__struct_config__.tag for member in get_args(union)}


def test_every_event_of_the_server_is_sent_or_left_out_for_a_reason() -> None:
    assert set(GA.kinds) == names(RealtimeEvent) | set(NOT_SENT)
    assert names(RealtimeEvent) & set(NOT_SENT) == set()


@pytest.mark.parametrize("name", sorted(names(RealtimeEvent) - AS_ASKED_FOR))
@settings(max_examples=20)
@given(data=st.data())
def test_every_event_that_is_sent_is_as_the_sdk_declares_it(name: str, data: st.DataObject) -> None:
    """Whatever it holds: no key more, none less, none of another type."""
    (kind,) = (each for each in get_args(RealtimeEvent) if each.__struct_config__.tag == name)
    message = encode_event(data.draw(of(kind)), 1)
    assert message is not None
    GA.check(message)


def test_every_event_of_the_client_is_taken() -> None:
    union = get_args(RealtimeClientEvent)[0]
    declared = {get_args(kind.model_fields["type"].annotation)[0] for kind in get_args(union)}
    assert declared == names(RealtimeCommand) | {"input_audio_buffer.append"}


def test_what_the_sdk_does_not_declare_is_unknown() -> None:
    with pytest.raises(ClientError) as refusal:
        decode_command(b'{"type":"conversation.item.rename"}')
    assert refusal.value.code == "unknown_event_type"
