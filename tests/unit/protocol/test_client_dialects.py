"""A client's half of each dialect, against the server's half of it."""

from __future__ import annotations

from typing import Any, get_args

import msgspec
import pytest

from duologue.core.errors import ProtocolError
from duologue.protocol.append_audio import AppendAudio, AppendPlacedAudio
from duologue.protocol.client_dialects import CLIENT_DIALECTS, ClientFamily
from duologue.protocol.commands import ClearAudio, Command, CreateItem, UpdateSession
from duologue.protocol.dialect import Encoding
from duologue.protocol.dialects import DIALECTS
from duologue.protocol.duplex.commands import AcknowledgeEvents, AcknowledgePlayback, Heartbeat
from duologue.protocol.duplex.session_patch import DuplexPatch
from duologue.protocol.events import AudioCleared, Event, SessionUpdated
from duologue.protocol.items import InputText, MessageItem
from duologue.protocol.json_codec import UnknownEvent
from duologue.protocol.response_events import AudioDelta
from tests.fakes.server import greeting

BOTH = [("realtime", "json"), ("realtime", "msgpack"), ("duplex", "json"), ("duplex", "msgpack")]
both = pytest.mark.parametrize(("family", "encoding"), BOTH)

TEXT = MessageItem(role="user", content=(InputText(text="héllo"),))
COMMANDS = [AppendAudio(audio=b"\x00\xff"), ClearAudio(event_id="e"), CreateItem(item=TEXT)]
DUPLEX_COMMANDS = [
    AppendPlacedAudio(audio=b"\x00\xff", start_sample=7),
    AcknowledgeEvents(server_event_seq=3),
    AcknowledgePlayback(item_id="i", played_ms=5),
    Heartbeat(),
]
DELTA = AudioDelta(response_id="r", item_id="i", output_index=0, content_index=0, delta=b"\x00\xff")


@both
def test_the_server_reads_what_the_client_writes(family: ClientFamily, encoding: Encoding) -> None:
    client, server = CLIENT_DIALECTS[family, encoding], DIALECTS[family, encoding]
    commands: list[Command] = [*COMMANDS, *(DUPLEX_COMMANDS if family == "duplex" else ())]
    for command in commands:
        read = server.decode_command(client.encode_command(command))
        assert msgspec.to_builtins(read) == msgspec.to_builtins(command)
    assert client.binary is server.binary


@both
def test_the_client_reads_what_the_server_writes(family: ClientFamily, encoding: Encoding) -> None:
    client, server = CLIENT_DIALECTS[family, encoding], DIALECTS[family, encoding]
    for seq, event in enumerate((AudioCleared(), DELTA), 41):
        message = server.encode_event(event, seq)
        assert message is not None
        assert client.decode_event(message) == (event, seq)
    if family == "realtime":
        message = server.encode_event(greeting(), 1)
        assert message is not None
        assert client.decode_event(message) == (greeting(), 1)


@pytest.mark.parametrize("encoding", get_args(Encoding))
def test_the_one_field_that_stands_elsewhere_is_put_there(encoding: Encoding) -> None:
    client, server = CLIENT_DIALECTS["duplex", encoding], DIALECTS["duplex", encoding]
    for patch in (DuplexPatch(auto_response=False), DuplexPatch(idle_timeout_s=5.0)):
        read = server.decode_command(client.encode_command(UpdateSession(session=patch)))
        assert isinstance(read, UpdateSession)
        assert isinstance(read.session, DuplexPatch)
        assert read.session.auto_response == patch.auto_response
        assert read.session.idle_timeout_s == patch.idle_timeout_s


@both
def test_an_event_that_is_not_known_is_passed_by(family: ClientFamily, encoding: Encoding) -> None:
    client = CLIENT_DIALECTS[family, encoding]
    message = written({"type": "brand.new", "event_id": "event_9", "x": 1}, encoding)
    event, seq = client.decode_event(message)
    assert event == UnknownEvent(type="brand.new", raw=message)
    assert seq == 9


@both
@pytest.mark.parametrize(
    "message",
    [
        [1],
        {"no": "type"},
        {"type": "response.output_audio.delta", "delta": 5},
        {"type": "session.created", "session": {"type": "realtime"}},
    ],
)
def test_a_message_that_cannot_be_read_is_refused(
    family: ClientFamily, encoding: Encoding, message: Any
) -> None:
    with pytest.raises(ProtocolError):
        CLIENT_DIALECTS[family, encoding].decode_event(written(message, encoding))
    with pytest.raises(ProtocolError):
        CLIENT_DIALECTS[family, encoding].decode_event(b"\xc1\xff{")


@pytest.mark.parametrize("encoding", get_args(Encoding))
def test_a_session_that_is_no_duplex_session_is_refused(encoding: Encoding) -> None:
    """Whoever answers so does not speak the dialect."""
    plain: Event = SessionUpdated(session=greeting().session)
    message = DIALECTS["realtime", encoding].encode_event(plain, 1)
    assert message is not None
    with pytest.raises(ProtocolError, match=r"session_id|capabilities"):
        CLIENT_DIALECTS["duplex", encoding].decode_event(message)


def test_other_servers_number_their_events_in_a_field_of_its_own() -> None:
    message = written(
        {"type": "input_audio_buffer.cleared", "event_id": "abc", "server_event_seq": 12}, "json"
    )
    assert CLIENT_DIALECTS["duplex", "json"].decode_event(message) == (AudioCleared(), 12)
    assert CLIENT_DIALECTS["realtime", "json"].decode_event(message) == (AudioCleared(), None)


def written(message: Any, encoding: Encoding) -> bytes:
    return (msgspec.json if encoding == "json" else msgspec.msgpack).encode(message)
