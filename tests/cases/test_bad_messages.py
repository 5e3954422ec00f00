"""C28, C29, C30, C33: what no client should send; one error each, nothing changed, and on it goes.

Through the connection, the dialect and the session, in every dialect.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import AsyncIterator, Callable

import msgspec
import pytest

from duologue.core.errors import ClientError
from duologue.gateway.settings import GatewaySettings
from duologue.protocol.commands import Command
from duologue.protocol.dialect import Family
from duologue.protocol.dialects import DIALECTS
from duologue.protocol.limits import MAX_APPEND_BYTES, MAX_EVENT_ID_CHARS
from tests.faults.fuzz import DialectKey, Victim, victim
from tests.patience import PATIENCE_S
from tests.unit.gateway.raw_websocket import BINARY, TEXT, connected
from tests.unit.gateway.small_server import small_server

AUDIO = base64.b64encode(b"\x10\x00" * 2400).decode()


@pytest.fixture(params=["realtime", "beta"])
async def call(request: pytest.FixtureRequest) -> AsyncIterator[Victim]:
    family: Family = request.param
    async with victim((family, "json")) as call:
        call.send(type="session.update", session={"turn_detection": None})
        yield call
        call.probe()


async def refusal(call: Victim, message: bytes) -> dict[str, str | None]:
    """Send it; there is one error and nothing else."""
    (event,) = await call.tell_at_length(message)
    assert event["type"] == "error", event
    error: dict[str, str | None] = event["error"]
    assert error["type"] == "invalid_request_error"
    return error


def append(audio: object, **more: object) -> bytes:
    event = {"type": "input_audio_buffer.append", "audio": audio, "event_id": "e1", **more}
    return json.dumps(event).encode()


# C28


async def test_c28_empty_audio_is_nothing(call: Victim) -> None:
    assert call.tell(append("")) == []
    assert call.talk.machine.listening.audio.held_ms == 0


@pytest.mark.parametrize(
    "audio",
    [
        "====",
        "abc",
        AUDIO[:80] + "\n" + AUDIO[80:],
        AUDIO[:80] + " " + AUDIO[80:],
        "__--" + AUDIO,
        "data:audio/wav;base64," + AUDIO,
        "A" * 5_000_000 + "*",
        "A" * 4_999_999 + "*",
        7,
        None,
        [AUDIO],
    ],
    ids=lambda audio: repr(audio)[:12],
)
async def test_c28_what_is_no_base64_is_refused_and_nothing_of_it_kept(
    call: Victim, audio: object
) -> None:
    call.tell(append(AUDIO))
    held_ms = call.talk.machine.listening.audio.held_ms
    error = await refusal(call, append(audio))
    assert (error["param"], error["event_id"]) == ("audio", "e1")
    assert error["code"] in ("invalid_base64", "invalid_value")
    assert call.talk.machine.listening.audio.held_ms == held_ms > 90


async def test_c28_audio_that_is_missing_is_named(call: Victim) -> None:
    error = await refusal(call, b'{"event_id":"e1","type":"input_audio_buffer.append"}')
    assert error["code"] == "missing_required_parameter"
    assert (error["param"], error["event_id"]) == ("audio", "e1")


# C29

NEST = 10_000
MAX_CPU_S = 0.05
"""What reading a bad envelope may cost; the dearest of them takes a tenth of it."""


def cpu_s(read: Callable[[bytes], Command], message: bytes) -> float:
    """The least of some readings: what else goes on at a machine can only add to them."""

    def once() -> float:
        began = time.thread_time()
        with pytest.raises(ClientError):
            read(message)
        return time.thread_time() - began

    return min(once() for _ in range(5))


@pytest.mark.parametrize(
    ("message", "code"),
    [
        (b"hello", "invalid_json"),
        (b"", "invalid_json"),
        (b"[]", "invalid_request"),
        (b"null", "invalid_request"),
        (b'"x"', "invalid_request"),
        (b"{}", "missing_required_parameter"),
        (b'{"type":1}', "unknown_event_type"),
        (b'{"type":"nothing.like.it"}', "unknown_event_type"),
        (b'{"type":"response.cancel "}', "unknown_event_type"),
        (b'{"type":"response.cancel","type":"response.create"}', "invalid_value"),
        (b'{"type":"response.cancel","event_id":"a","event_id":"b"}', "invalid_value"),
        (b"[" * NEST + b"]" * NEST, "invalid_request"),
        (b'{"type":"response.cancel","x":' + b'{"a":' * NEST + b"1" + b"}" * NEST + b"}", None),
        (b'{"type":"response.cancel","x":' + b"[" * NEST + b"]" * NEST + b"}", None),
        (b'{"type":"conversation.item.delete","item_id":NaN}', "invalid_json"),
        (b'{"type":"response.cancel","x":Infinity}', "invalid_json"),
        (b'{"type":"response.cancel","event_id":"%b"}' % (b"x" * 2_000_000), "limit_exceeded"),
        (b'\xef\xbb\xbf{"type":"response.cancel"}', "invalid_json"),
        (b'{"type":"conversation.item.delete","item_id":"\\ud800"}', "invalid_json"),
        (b'{"type":"conversation.item.delete","item_id":"\xff"}', None),
        (b'{"type":"response.cancel"} {"type":"response.cancel"}', "invalid_json"),
    ],
    ids=lambda value: repr(value)[:40],
)
async def test_c29_a_bad_envelope_is_one_error(
    call: Victim, message: bytes, code: str | None
) -> None:
    before = call.talk.machine.config
    error = await refusal(call, message)
    assert error["code"] == code or (code is None and error["code"] == "invalid_json")
    assert len(error["message"] or "") < 500
    assert call.talk.machine.config is before
    assert cpu_s(DIALECTS[call.family, call.encoding].decode_command, message) < MAX_CPU_S


@pytest.mark.parametrize(
    ("message", "event_id"),
    [
        (b'{"type":"nothing.like.it","event_id":"mine"}', "mine"),
        (b'{"event_id":"mine","type":"session.update"}', "mine"),
        (b'{"event_id":7,"type":"session.update"}', None),
        (b'{"event_id":"mine","type":', None),
        (
            b'{"type":"nope","event_id":"%b"}' % (b"x" * MAX_EVENT_ID_CHARS),
            "x" * MAX_EVENT_ID_CHARS,
        ),
        (b'{"type":"nope","event_id":"%b"}' % (b"x" * (MAX_EVENT_ID_CHARS + 1)), None),
    ],
    ids=lambda value: repr(value)[:40],
)
async def test_c29_the_clients_id_comes_back_where_it_can_be_read_and_is_sane(
    call: Victim, message: bytes, event_id: str | None
) -> None:
    error = await refusal(call, message)
    assert error["event_id"] == event_id


@pytest.mark.parametrize("private_reader", [True, False])
async def test_c29_a_binary_frame_is_read_as_the_text_it_holds(private_reader: bool) -> None:
    settings = GatewaySettings(private_reader=private_reader)
    async with small_server(settings) as server, connected(server.port) as peer:
        await peer.upgrade("/v1/realtime")
        await peer.event()
        peer.send(BINARY, b"\x00\x01\xfe\xff" * 200)
        assert (await peer.event())["error"]["code"] == "invalid_json"
        peer.send(BINARY, b'{"type":"input_audio_buffer.clear"}')
        assert (await peer.event())["type"] == "input_audio_buffer.cleared"
        peer.send(TEXT, b'{"type":"conversation.item.delete","item_id":"\xff"}')
        assert (await peer.event())["error"]["code"] == "invalid_json"
        peer.send(TEXT, b'{"type":"input_audio_buffer.clear"}')
        assert (await peer.event())["type"] == "input_audio_buffer.cleared"


_MANY = 1_000_000
"""Such messages took up to a second to read, in which nobody's call went on."""

MILLIONS: dict[str, dict[str, object]] = {
    "pairs": {
        "type": "response.create",
        "response": {"metadata": dict.fromkeys(map(str, range(_MANY)), "")},
    },
    "parts": {"type": "conversation.item.create", "item": {"content": [{"type": "x"}] * _MANY}},
    "unknown": {"type": "response.create", "x": ["a"] * _MANY},
    "lists": {"type": "response.create", "response": {"metadata": [[]] * _MANY}},
    "numbers": {
        "type": "session.update",
        "session": {"tools": [{"type": "function", "name": "x", "parameters": {"x": [1] * _MANY}}]},
    },
}


@pytest.mark.parametrize("key", DIALECTS, ids=" ".join)
@pytest.mark.parametrize("name", MILLIONS)
async def test_c29_what_is_made_of_millions_of_pieces_is_refused_before_it_is_read(
    key: DialectKey, name: str
) -> None:
    encode = json.dumps if key[1] == "json" else msgspec.msgpack.encode
    message = encode(MILLIONS[name])
    async with victim(key) as call:
        error = await refusal(call, message.encode() if isinstance(message, str) else message)
        assert error["code"] == "limit_exceeded"
        assert "65536" in str(error["message"])
        call.probe()


# C30

LONG_S = 30.0
"""More than it takes to work off five minutes of audio."""


@pytest.mark.parametrize(("more", "code"), [(-1, None), (0, None), (1, "limit_exceeded")])
async def test_c30_one_append_holds_so_many_bytes_and_no_more(more: int, code: str | None) -> None:
    audio = base64.b64encode(bytes(MAX_APPEND_BYTES + more)).decode()
    async with victim(("realtime", "json")) as call:
        call.send(type="session.update", session={"turn_detection": None})
        events = await call.tell_at_length(append(audio))
        if code is None:
            assert events == []
            call.talk.clock.advance(LONG_S)
            assert call.talk.machine.listening.audio.held_ms > 300_000
        else:
            assert [(e["error"]["code"], e["error"]["param"]) for e in events] == [(code, "audio")]
        call.probe()


@pytest.mark.parametrize("private_reader", [True, False])
async def test_c30_a_message_that_is_too_large_ends_the_connection_with_the_limit(
    private_reader: bool,
) -> None:
    settings = GatewaySettings(max_message_bytes=4096, private_reader=private_reader)
    async with small_server(settings) as server:
        async with connected(server.port) as peer:
            await peer.upgrade("/v1/realtime")
            await peer.event()
            peer.send(TEXT, b"x" * 4097)
            goodbye = await peer.goodbye()
            assert goodbye.code == 1009
            assert "4096" in goodbye.reason
        await server.realtime.wait_closed(PATIENCE_S)
        assert len(server.sessions) == 0


# C33


@pytest.mark.parametrize(
    ("session", "param"),
    [
        ({"input_audio_format": "g711-ulaw"}, "session.input_audio_format"),
        ({"output_audio_format": "pcm24"}, "session.output_audio_format"),
        ({"voice": 7}, "session.voice"),
        ({"modalities": ["speech"]}, "session.modalities[0]"),
        ({"turn_detection": {"type": "servervad"}}, "session.turn_detection.type"),
        ({"turn_detection": {"type": "server_vad", "foo": 1}}, "session.turn_detection.foo"),
        ({"temperature": "hot"}, "session.temperature"),
        ({"max_response_output_tokens": "infinite"}, "session.max_response_output_tokens"),
    ],
)
async def test_c33_a_wrong_value_in_a_flat_session_is_named_and_nothing_applied(
    call: Victim, session: dict[str, object], param: str
) -> None:
    before = call.talk.machine.config
    update = {"type": "session.update", "session": {"instructions": "valid", **session}}
    error = await refusal(call, json.dumps(update).encode())
    assert error["param"] == param
    assert call.talk.machine.config is before


async def test_c33_what_a_flat_session_does_not_know_is_passed_by(call: Victim) -> None:
    (event,) = call.send(type="session.update", session={"foo": 1, "instructions": "valid"})
    assert event["type"] == "session.updated"
    assert event["session"]["instructions"] == "valid"
    assert "foo" not in event["session"]
