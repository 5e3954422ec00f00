from __future__ import annotations

import json
import time
from typing import Any

import pytest
from openai.types.realtime import ClientSecretCreateResponse

from duologue.core.errors import ClientError
from duologue.gateway.http.client_secrets import LIFETIME_S, MAX_BODY_BYTES, read_request
from duologue.gateway.settings import GatewaySettings
from tests.fakes.plugin import FakePlugin
from tests.unit.gateway.raw_websocket import Response, connected
from tests.unit.gateway.small_server import SmallServer, small_server

PATH = "/v1/realtime/client_secrets"
KEY = {"Authorization": "Bearer sesame"}
SETTINGS = GatewaySettings(api_keys=("sesame",))
SESSION = {
    "type": "realtime",
    "model": "other",
    "instructions": "Be kind.",
    "audio": {"input": {"format": {"type": "audio/pcmu"}}, "output": {"voice": "marin"}},
}


async def ask(server: SmallServer, body: Any = None, headers: dict[str, str] = KEY) -> Response:
    data = b"" if body is None else json.dumps(body).encode()
    async with connected(server.port) as peer:
        return await peer.ask(
            PATH, headers | {"Content-Length": str(len(data))}, behind=data, method="POST"
        )


async def test_a_secret_opens_a_call_that_begins_as_the_server_wanted() -> None:
    async with small_server(SETTINGS) as server:
        answer = await ask(server, {"session": SESSION})
        assert answer.status == 200
        assert answer.headers["Cache-Control"] == "no-store"
        page = ClientSecretCreateResponse.model_validate(answer.json, strict=True)
        assert page.value.startswith("ek_")
        assert abs(page.expires_at - LIFETIME_S - time.time()) < 5
        assert page.session.type == "realtime"
        assert page.session.instructions == "Be kind."
        async with connected(server.port) as peer:
            protocol = f"realtime, openai-insecure-api-key.{page.value}"
            await peer.upgrade("/v1/realtime?model=echo", Sec_WebSocket_Protocol=protocol)
            assert peer.response.headers["Sec-WebSocket-Protocol"] == "realtime"
            begun = (await peer.event())["session"]
            same = ("model", "instructions", "audio", "type", "object", "tools")
            assert {k: begun[k] for k in same} == {k: answer.json["session"][k] for k in same}
            assert begun["model"] == "other"
            assert begun["audio"]["input"]["format"] == {"type": "audio/pcmu"}


@pytest.mark.parametrize("body", [None, {}, {"session": None}, {"expires_after": None}])
async def test_nothing_need_be_asked_for(body: Any) -> None:
    async with small_server() as server:
        answer = await ask(server, body, {})
        assert answer.status == 200
        assert answer.json["session"]["model"] == "echo"
        assert len(server.sessions) == 0


async def test_a_transcription_session_can_be_bound_too() -> None:
    body = {"session": {"type": "transcription", "audio": {"input": {"turn_detection": None}}}}
    async with small_server(plugins={"m": FakePlugin()}, pipelines=("asr",)) as server:
        answer = await ask(server, body)
        page = ClientSecretCreateResponse.model_validate(answer.json)
        assert page.session.type == "transcription"
        async with connected(server.port) as peer:
            await peer.upgrade("/v1/realtime", Authorization=f"Bearer {page.value}")
            assert (await peer.event())["session"]["type"] == "transcription"
    async with small_server() as server:
        answer = await ask(server, body)
        assert (answer.status, answer.json["error"]["code"]) == (501, "no_recogniser")


@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        ({}, 401, "invalid_api_key"),
        ({"api-key": "wrong"}, 401, "invalid_api_key"),
        (KEY | {"Origin": "https://evil.example"}, 403, "origin_not_allowed"),
    ],
)
async def test_secrets_are_made_for_keys_alone(
    headers: dict[str, str], status: int, code: str
) -> None:
    async with small_server(SETTINGS) as server:
        answer = await ask(server, {}, headers)
        assert (answer.status, answer.json["error"]["code"]) == (status, code)


async def test_a_secret_makes_no_further_secrets() -> None:
    async with small_server(SETTINGS) as server:
        secret = (await ask(server)).json["value"]
        answer = await ask(server, {}, {"Authorization": f"Bearer {secret}"})
        assert (answer.status, answer.json["error"]["code"]) == (403, "api_key_not_allowed")
        assert secret not in answer.body.decode()


@pytest.mark.parametrize(
    ("session", "param", "code"),
    [
        ({"audio": {"output": {"voice": "nope"}}}, "session.audio.output.voice", "invalid_value"),
        ({"instructions": 1}, "session.instructions", "invalid_value"),
        (
            {"audio": {"input": {"turn_detection": {"type": "server_vad", "foo": 1}}}},
            "session.audio.input.turn_detection.foo",
            "unknown_parameter",
        ),
        ({"model": 1}, "session.model", "invalid_value"),
        (
            {"audio": {"input": {"format": {"type": "audio/pcm", "rate": 11025}}}},
            "session.audio.input.format.rate",
            "invalid_value",
        ),
    ],
)
async def test_a_session_is_judged_as_in_an_update(
    session: dict[str, Any], param: str, code: str
) -> None:
    async with small_server() as server:
        answer = await ask(server, {"session": session})
        error = answer.json["error"]
        assert (answer.status, error["param"], error["code"]) == (400, param, code)


@pytest.mark.parametrize(
    ("body", "param"),
    [
        (b"[]", None),
        (b"null", None),
        (b"{", None),
        (b"\xff", None),
        (b'{"session":{"a":{}', None),
        (b"{" + b'"a":{' * 5000, None),
        (b'{"session":7}', "session"),
        (
            b'{"session":{"tracing":{"metadata":{"a":1%b}}}}' % (b"0" * 30),
            "session.tracing.metadata.a",
        ),
        (b'{"x":1%b}' % (b"0" * 30), "x"),
        (b'{"session":{},"session":{}}', "session"),
        (b'{"expires_after":{"seconds":9}}', "expires_after.seconds"),
        (b'{"expires_after":{"seconds":7201}}', "expires_after.seconds"),
        (b'{"expires_after":{"seconds":"60"}}', "expires_after.seconds"),
        (b'{"expires_after":{"seconds":1.5}}', "expires_after.seconds"),
        (b'{"expires_after":{"anchor":"now"}}', "expires_after.anchor"),
        (b'{"a":"' + b"x" * MAX_BODY_BYTES + b'"}', "session"),
    ],
)
def test_a_body_that_is_none_is_refused_with_the_field(body: bytes, param: str | None) -> None:
    with pytest.raises(ClientError) as caught:
        read_request(body)
    assert caught.value.param == param


@pytest.mark.parametrize("seconds", [10, 7200])
def test_a_lifetime_lies_within_its_limits(seconds: int) -> None:
    assert read_request(b'{"expires_after":{"seconds":%d}}' % seconds)[1] == seconds
    assert read_request(b" ")[1] == LIFETIME_S
