from __future__ import annotations

import json
from typing import Any

import pytest
from openai.types.beta.realtime import SessionCreateResponse, TranscriptionSession

from duologue.gateway.settings import GatewaySettings
from tests.fakes.plugin import FakePlugin
from tests.unit.gateway.raw_websocket import Response, connected
from tests.unit.gateway.small_server import SmallServer, small_server

SETTINGS = GatewaySettings(api_keys=("sesame",))
FLAT = {
    "model": "other",
    "modalities": ["audio", "text"],
    "voice": "alloy",
    "instructions": "Be kind.",
    "input_audio_format": "g711_ulaw",
    "client_secret": {"expires_after": {"anchor": "created_at", "seconds": 60}},
}


async def ask(server: SmallServer, name: str, body: Any, key: str = "sesame") -> Response:
    data = json.dumps(body).encode()
    headers = {"api-key": key, "Content-Length": str(len(data))}
    async with connected(server.port) as peer:
        return await peer.ask(f"/v1/realtime/{name}", headers, behind=data, method="POST")


async def test_a_flat_session_is_answered_flat_and_opens_a_call_of_either_dialect() -> None:
    async with small_server(SETTINGS) as server:
        answer = await ask(server, "sessions", FLAT)
        assert answer.status == 200
        page = SessionCreateResponse.model_validate(answer.json)
        assert page.instructions == "Be kind."
        assert page.input_audio_format == "g711_ulaw"
        key = {"Authorization": f"Bearer {page.client_secret.value}"}
        async with connected(server.port) as peer:
            await peer.upgrade("/v1/realtime", **key, OpenAI_Beta="realtime=v1")
            session = (await peer.event())["session"]
            assert (session["model"], session["input_audio_format"]) == ("other", "g711_ulaw")
        async with connected(server.port) as peer:
            await peer.upgrade("/v1/realtime", **key)
            audio = (await peer.event())["session"]["audio"]
            assert audio["input"]["format"] == {"type": "audio/pcmu"}


async def test_a_transcription_session_too() -> None:
    transcription = {"model": "whisper-1"}
    body = {"input_audio_transcription": transcription, "turn_detection": None}
    async with small_server(plugins={"m": FakePlugin()}, pipelines=("asr",)) as server:
        answer = await ask(server, "transcription_sessions", body)
        page = TranscriptionSession.model_validate(answer.json)
        async with connected(server.port) as peer:
            await peer.upgrade("/v1/realtime", Authorization=f"Bearer {page.client_secret.value}")
            assert (await peer.event())["session"]["type"] == "transcription"


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"voice": "nope"}, "session.voice"),
        ({"input_audio_format": "g711-ulaw"}, "session.input_audio_format"),
        ({"model": 1}, "model"),
        (
            {"client_secret": {"expires_after": {"seconds": 9}}},
            "client_secret.expires_after.seconds",
        ),
    ],
)
async def test_what_is_wrong_is_named(change: dict[str, Any], param: str) -> None:
    async with small_server(SETTINGS) as server:
        answer = await ask(server, "sessions", FLAT | change)
        error = answer.json["error"]
        assert (answer.status, error["code"]) == (400, "invalid_value")
        assert error["param"].endswith(param.rpartition(".")[2])


async def test_secrets_are_made_for_keys_alone() -> None:
    async with small_server(SETTINGS) as server:
        answer = await ask(server, "sessions", {}, key="wrong")
        assert (answer.status, answer.json["error"]["code"]) == (401, "invalid_api_key")
