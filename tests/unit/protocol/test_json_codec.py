from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from duologue.core.errors import ClientError, LimitExceeded, ProtocolError
from duologue.protocol.append_audio import AppendAudio
from duologue.protocol.commands import (
    ClearAudio,
    Command,
    CreateItem,
    CreateResponse,
    UpdateSession,
)
from duologue.protocol.events import Event, ItemRetrieved
from duologue.protocol.items import FunctionCallItem, InputAudio, MessageItem
from duologue.protocol.json_codec import (
    UnknownEvent,
    decode_command,
    decode_event,
    encode_command,
    encode_event,
)
from duologue.protocol.limits import MAX_APPEND_BYTES
from duologue.protocol.response_events import AudioDelta
from tests.unit.protocol.json_messages import APPEND, append, refused
from tests.unit.protocol.messages import commands, events, of


def outcome(decode: Callable[[bytes], Command], message: bytes) -> Any:
    try:
        return decode(message)
    except ClientError as exc:
        return type(exc), exc.code, exc.param


def decode_the_long_way(message: bytes) -> Command:
    """The typed path: a leading space is enough to miss the short one."""
    return decode_command(b" " + message)


@given(commands())
def test_a_command_survives_the_wire(command: Command) -> None:
    assert decode_command(encode_command(command)) == command


@given(commands())
def test_a_command_as_text_is_the_same_as_its_bytes(command: Command) -> None:
    assert decode_command(encode_command(command).decode()) == command


@given(events(), st.integers(0, 2**63))
def test_an_event_survives_the_wire_with_its_number_first(event: Event, seq: int) -> None:
    message = encode_event(event, seq)
    assert message.startswith(b'{"event_id":"event_%d","type":"' % seq)
    assert decode_event(message) == (event, f"event_{seq}")
    assert list(json.loads(message))[1] == "type"


@given(of(AudioDelta), st.integers(0, 99))
def test_the_short_way_of_an_audio_delta_writes_what_the_long_way_does(
    event: AudioDelta, seq: int
) -> None:
    long_way = msgspec.json.encode({"event_id": f"event_{seq}"})[:-1] + b","
    assert encode_event(event, seq) == long_way + msgspec.json.encode(event)[1:]


@given(st.binary(max_size=60))
@example(b"")
@example(b'AAAA","event_id":"x')
@example(b'AAAA","audio":"BBBB')
@example(b'AAAA\\",\\"x\\":\\"')
@example(b"+\\/8A")
@example(b"AA\nA")
@example(b"YWJ=")
def test_the_short_way_of_an_append_reads_what_the_long_way_does(middle: bytes) -> None:
    assert outcome(decode_command, append(middle)) == outcome(decode_the_long_way, append(middle))


@given(st.text('AB+/=\\",:{} \neventid_ audio', max_size=30))
def test_whatever_follows_the_audio_both_ways_agree(suffix: str) -> None:
    message = APPEND + suffix.encode()
    assert outcome(decode_command, message) == outcome(decode_the_long_way, message)


@given(st.binary(max_size=99), st.sampled_from(["", "e1", "audio", "\u00e9"]))
def test_an_append_may_have_spaces_an_id_and_any_order_of_keys(audio: bytes, event_id: str) -> None:
    fields = {"audio": base64.b64encode(audio).decode(), "type": "input_audio_buffer.append"}
    if event_id:
        fields["event_id"] = event_id
    for keys in (list(fields), sorted(fields), sorted(fields, reverse=True)):
        message = json.dumps({key: fields[key] for key in keys}, indent=1)
        assert decode_command(message) == AppendAudio(audio=audio, event_id=event_id or None)


@given(st.binary(max_size=200))
def test_any_bytes_at_all_are_a_command_or_one_refusal(message: bytes) -> None:
    assert outcome(decode_command, message) is not None


@given(commands(), st.data())
def test_a_damaged_command_is_a_command_or_one_refusal(
    command: Command, data: st.DataObject
) -> None:
    message = bytearray(encode_command(command))
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(message) - 1))
        message[place] = data.draw(st.integers(0, 255))
    assert outcome(decode_command, bytes(message)) is not None


LONG_PCM = bytes(range(256)) * 1024
LONG = base64.b64encode(LONG_PCM)


@pytest.mark.parametrize(
    "message",
    [
        b'{"type": "input_audio_buffer.append", "event_id": "e", "audio": "%b"}' % LONG,
        b'{"audio":"%b","event_id":"e","type":"input_audio_buffer.append"}' % LONG,
        b'{"event_id":"e","type":"input_audio_buffer.append","audio":"%b"}'
        % LONG.replace(b"/", b"\\/"),
        b'{"event_id":"e","type":"input_audio_buffer.append","more":"\\"audio\\"","audio":"%b"}'
        % LONG,
    ],
)
def test_a_long_append_reads_as_a_short_one_however_it_is_written(message: bytes) -> None:
    assert decode_command(message) == AppendAudio(audio=LONG_PCM, event_id="e")


@pytest.mark.parametrize(
    ("fields", "code", "param"),
    [
        (b'"event_id":"e","audio":"%b","audio":""' % LONG, "invalid_value", "audio"),
        (b'"event_id":"e","event_id":"e","audio":"%b"' % LONG, "invalid_value", "event_id"),
        (b'"event_id":"e","audio":"%b*"' % LONG, "invalid_base64", "audio"),
        (b'"event_id":"e","audio":"%b\n"' % LONG, "invalid_json", None),
        (b'"event_id":"e","audio":"%b\\""' % LONG, "invalid_base64", "audio"),
    ],
)
def test_a_long_append_is_refused_for_what_a_short_one_is(
    fields: bytes, code: str, param: str | None
) -> None:
    long, short = (
        refused(b'{"type":"input_audio_buffer.append",%b}' % fields.replace(LONG, text))
        for text in (LONG, b"AAAA")
    )
    assert (long.code, long.param) == (code, param)
    assert (long.code, long.param, long.event_id) == (short.code, short.param, short.event_id)


def test_empty_audio_is_allowed() -> None:
    assert decode_command(append(b"")) == AppendAudio(audio=b"")


@pytest.mark.parametrize("prefix", [b"", b" "])
def test_an_append_may_hold_15_mib_and_no_more(prefix: bytes) -> None:
    for size in (MAX_APPEND_BYTES - 1, MAX_APPEND_BYTES):
        command = decode_command(prefix + append(base64.b64encode(bytes(size))))
        assert isinstance(command, AppendAudio)
        assert len(command.audio) == size
    error = refused(prefix + append(base64.b64encode(bytes(MAX_APPEND_BYTES + 1))))
    assert isinstance(error, LimitExceeded)
    assert error.param == "audio"
    assert "limit is 15728640 bytes" in error.message


def test_unknown_keys_are_ignored() -> None:
    assert decode_command(b'{"type":"input_audio_buffer.clear","x":[1,{"y":null}]}') == ClearAudio()


def test_nulls_in_items_and_responses_count_as_absent() -> None:
    assert decode_command(
        b'{"type":"response.create","response":{"instructions":null,"metadata":null}}'
    ) == decode_command(b'{"type":"response.create","response":{}}')
    created = decode_command(
        b'{"type":"conversation.item.create","previous_item_id":null,"item":'
        b'{"type":"function_call","id":null,"name":"f","call_id":null,"arguments":"{}"}}'
    )
    assert created == CreateItem(item=FunctionCallItem(name="f", arguments="{}"))


def test_a_null_response_is_no_response() -> None:
    assert decode_command(b'{"type":"response.create","response":null}') == CreateResponse()


def test_dropped_nulls_do_not_hide_what_is_wrong() -> None:
    error = refused(
        b'{"type":"conversation.item.create","item":{"type":"message","id":null,"role":"user",'
        b'"content":[{"type":"output_text","text":"x"}]}}'
    )
    assert error.param == "item.content[0].type"


def test_nulls_of_a_session_keep_their_meaning() -> None:
    command = decode_command(
        b'{"type":"session.update","session":{"audio":{"input":{"turn_detection":null}}}}'
    )
    assert isinstance(command, UpdateSession)
    assert command.session.audio
    assert command.session.audio.input
    assert command.session.audio.input.turn_detection is None


def test_an_append_without_id_is_written_in_the_form_that_is_read_fastest() -> None:
    assert encode_command(AppendAudio(audio=b"abc")) == append(b"YWJj")
    assert encode_command(AppendAudio(audio=b"abc", event_id="e")).count(b'"') == 12


def test_strange_ids_are_escaped_in_an_audio_delta() -> None:
    event = AudioDelta(
        response_id='r"\\', item_id="\u00e9\n", output_index=0, content_index=0, delta=b"x"
    )
    assert decode_event(encode_event(event, 1)) == (event, "event_1")


def test_the_transcript_key_is_written_though_it_is_null() -> None:
    item = MessageItem(id="item_1", role="user", content=(InputAudio(),))
    assert b'{"type":"input_audio","transcript":null}' in encode_event(ItemRetrieved(item=item), 1)


def test_news_from_a_server_does_not_kill_the_client() -> None:
    message = b'{"type":"response.brand_new","event_id":"event_3","x":[1]}'
    assert decode_event(message) == (
        UnknownEvent(type="response.brand_new", raw=message),
        "event_3",
    )


def test_an_event_without_id_and_with_new_keys_is_read() -> None:
    event, event_id = decode_event('{"type":"input_audio_buffer.cleared","new":1}')
    assert type(event).__name__ == "AudioCleared"
    assert event_id == ""


@pytest.mark.parametrize(
    "message",
    [
        b"nonsense",
        b"[]",
        b"{}",
        b'{"type":"response.output_audio.delta","response_id":"r"}',
        b'{"type":"response.output_audio.delta","response_id":"r","item_id":"i","output_index":0,'
        b'"content_index":0,"delta":"*"}',
        b'{"type":"x","y":' + b"[" * 100_000,
        "\ud800",
    ],
)
def test_a_malformed_event_is_one_error(message: bytes | str) -> None:
    with pytest.raises(ProtocolError):
        decode_event(message)
