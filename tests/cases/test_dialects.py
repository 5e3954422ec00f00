"""C68: a connection speaks one dialect from its first event to its last, whatever it is told.

OpenAI's SDK is at the other end, and every event that comes is held against its classes: those of
the beta have no name of GA among them, and the other way round.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import websockets
from openai import AsyncOpenAI
from websockets.exceptions import InvalidStatus

from duologue.gateway.settings import GatewaySettings
from tests.conformance.official_caller import OfficialCaller, beta_call, official_call
from tests.conformance.sdk_schema import BETA
from tests.conformance.talking_gateway import (
    API_KEY,
    TalkingGateway,
    talking_gateway,
    talking_settings,
    with_lead,
)
from tests.faults.scripted_models import BEEP_RATE_HZ
from tests.patience import PATIENCE_S

AS_BETA = {"OpenAI-Beta": "realtime=v1"}
TOOL = {"type": "function", "name": "look_up", "parameters": {"type": "object"}}
FLAT = {
    "modalities": ["text", "audio"],
    "instructions": "Be kind.",
    "voice": "two",
    "input_audio_format": "pcm16",
    "output_audio_format": "pcm16",
    "input_audio_transcription": {"model": "whisper-1"},
    "turn_detection": {"type": "server_vad", "threshold": 0.6, "silence_duration_ms": 300},
    "tools": [TOOL],
    "tool_choice": "auto",
    "temperature": 0.8,
    "max_response_output_tokens": 200,
}
NESTED = {
    "type": "realtime",
    "output_modalities": ["audio"],
    "instructions": "Be kind.",
    "audio": {
        "input": {
            "format": {"type": "audio/pcm", "rate": 24000},
            "transcription": {"model": "whisper-1"},
            "turn_detection": {
                "type": "server_vad",
                "threshold": 0.6,
                "silence_duration_ms": 300,
            },
        },
        "output": {"format": {"type": "audio/pcm", "rate": 24000}, "voice": "two"},
    },
    "tools": [TOOL],
    "temperature": 0.8,
    "max_output_tokens": 200,
}


@pytest.fixture
async def gateway(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[TalkingGateway]:
    monkeypatch.syspath_prepend(tmp_path)
    async with talking_gateway(with_lead(talking_settings(tmp_path), 500)) as gateway:
        yield gateway


def text(words: str, role: str = "user", kind: str = "input_text") -> dict[str, object]:
    return {"type": "message", "role": role, "content": [{"type": kind, "text": words}]}


async def check_spoken_turn(caller: OfficialCaller) -> list[str]:
    """Speak, be answered and interrupt; returns what the answers' transcripts were."""
    started = "input_audio_buffer.speech_started"
    await caller.say("long")
    await caller.hear(started)
    delta = await caller.hear("response.audio.delta", "response.output_audio.delta")
    await caller.listen(800)
    await caller.say("hello again")
    await caller.hear(started)
    cancelled = (await caller.hear("response.done"))["response"]
    assert (cancelled["status"], cancelled["status_details"]["reason"]) == (
        "cancelled",
        "turn_detected",
    )
    place = {"item_id": delta["item_id"], "content_index": 0}
    await caller.send(type="conversation.item.truncate", **place, audio_end_ms=400)
    completed = (await caller.hear("response.done"))["response"]
    assert completed["status"] == "completed"
    said = "conversation.item.input_audio_transcription.completed"
    assert [e["transcript"] for e in caller.record.of(said)][-2:] == ["long", "hello again"]
    assert caller.record.of("conversation.item.truncated")[-1]["audio_end_ms"] == 400
    return [completed["output"][0]["content"][0]["transcript"]]


async def test_c68_a_beta_client_holds_a_whole_call(gateway: TalkingGateway) -> None:
    async with beta_call(gateway.http_url, API_KEY) as caller:
        connection = caller.connection
        created = await caller.hear("session.created")
        assert created["session"]["modalities"] == ["text", "audio"]
        assert created["session"]["model"] == "gpt-4o-realtime-preview"
        await connection.session.update(session=FLAT)
        session = (await caller.hear("session.updated"))["session"]
        assert {key: session[key] for key in FLAT if key not in ("turn_detection", "tools")} == {
            key: value for key, value in FLAT.items() if key not in ("turn_detection", "tools")
        } | {"input_audio_transcription": session["input_audio_transcription"]}
        assert session["input_audio_transcription"]["model"] == "whisper-1"
        assert FLAT["turn_detection"].items() <= session["turn_detection"].items()
        assert session["tools"][0].items() >= TOOL.items()

        item = connection.conversation.item
        await item.create(item=text("Well, you said hi.", "assistant", "text") | {"id": "said"})
        shown = (await caller.hear("conversation.item.created"))["item"]
        assert shown["content"] == [{"type": "text", "text": "Well, you said hi."}]
        await item.create(item=text("hello") | {"id": "asked"}, previous_item_id="said")
        assert (await caller.hear("conversation.item.created"))["previous_item_id"] == "said"
        await connection.response.create(
            response={
                "modalities": ["text"],
                "temperature": 0.7,
                "max_response_output_tokens": 50,
                "metadata": {"k": "v"},
            }
        )
        await caller.hear("response.text.delta")
        done = (await caller.hear("response.done"))["response"]
        assert (done["modalities"], done["max_output_tokens"]) == (["text"], 50)
        assert done["metadata"] == {"k": "v"}
        assert done["output"][0]["content"] == [{"type": "text", "text": "Well, you said hello."}]

        assert await check_spoken_turn(caller) == ["Well, you said hello again."]
        await item.retrieve(item_id="asked")
        assert (await caller.hear("conversation.item.retrieved"))["item"]["id"] == "asked"
        await item.delete(item_id="asked")
        await caller.hear("conversation.item.deleted")
        await connection.session.update(session={"turn_detection": None})
        assert (await caller.hear("session.updated"))["session"]["turn_detection"] is None
        # How much quiet came in behind the turn is a matter of time.
        await connection.input_audio_buffer.clear()
        await caller.hear("input_audio_buffer.cleared")
        await connection.input_audio_buffer.commit()
        assert (await caller.hear("error"))["error"]["code"] == "input_audio_buffer_commit_empty"
        await connection.session.update(session={"voice": "nobody"})
        error = (await caller.hear("error"))["error"]
        assert error["param"] == "session.voice"

        names = [event["item"]["id"] for event in caller.record.of("conversation.item.created")]
        assert len(names) == len(set(names)) == 7
        assert not [e for e in caller.record.came if "output_audio." in e["type"]]


async def test_c68_a_ga_client_holds_its_call_without_a_name_of_the_beta(
    gateway: TalkingGateway,
) -> None:
    async with official_call(gateway.http_url, API_KEY) as caller:
        await caller.hear("session.created")
        await caller.send(type="session.update", session=NESTED)
        session = (await caller.hear("session.updated"))["session"]
        assert session["output_modalities"] == ["audio"]
        assert await check_spoken_turn(caller) == ["Well, you said hello again."]


async def test_c68_flat_fields_on_a_ga_socket_are_mapped(gateway: TalkingGateway) -> None:
    async with official_call(gateway.http_url, API_KEY) as caller:
        await caller.hear("session.created")
        await caller.send(type="session.update", session={"type": "realtime", **FLAT})
        session = (await caller.hear("session.updated"))["session"]
        assert session["output_modalities"] == ["audio"]
        assert session["audio"]["output"]["voice"] == "two"
        assert session["audio"]["input"]["transcription"]["model"] == "whisper-1"
        detection = session["audio"]["input"]["turn_detection"]
        assert FLAT["turn_detection"].items() <= detection.items()
        assert session["max_output_tokens"] == 200
        assert not {"voice", "modalities", "input_audio_format", "turn_detection"} & set(session)
        assert await check_spoken_turn(caller) == ["Well, you said hello again."]
        response = {"modalities": ["text"], "max_response_output_tokens": 7}
        await caller.send(type="response.create", response=response)
        done = (await caller.hear("response.done"))["response"]
        assert (done["output_modalities"], done["max_output_tokens"]) == (["text"], 7)
        assert "modalities" not in done


async def test_c68_a_ga_body_behind_a_beta_header_is_answered_in_beta(
    gateway: TalkingGateway,
) -> None:
    async with official_call(
        gateway.http_url, API_KEY, "gpt-4o-realtime-preview", headers=AS_BETA
    ) as caller:
        await caller.hear("session.created")
        await caller.send(type="session.update", session=NESTED)
        session = (await caller.hear("session.updated"))["session"]
        assert session["modalities"] == ["text", "audio"]
        assert (session["voice"], session["input_audio_format"]) == ("two", "pcm16")
        assert session["turn_detection"]["threshold"] == 0.6
        assert session["max_response_output_tokens"] == 200
        assert not {"audio", "type", "output_modalities"} & set(session)
        assert await check_spoken_turn(caller) == ["Well, you said hello again."]


async def test_c68_a_dialect_that_is_off_is_a_plain_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    door = GatewaySettings(api_keys=(API_KEY,), dialects=())
    async with talking_gateway(talking_settings(tmp_path, gateway=door)) as gateway:
        url = gateway.http_url.replace("http:", "ws:")
        async with AsyncOpenAI(api_key=API_KEY, websocket_base_url=url) as client:
            with pytest.raises(InvalidStatus) as refused:
                await client.beta.realtime.connect(model="gpt-4o-realtime-preview").enter()
        answer = refused.value.response
        error = json.loads(answer.body)["error"]
        assert (answer.status_code, error["code"]) == (400, "unsupported")
        assert "OpenAI-Beta" in error["message"]
        async with official_call(gateway.http_url, API_KEY) as caller:
            await caller.hear("session.created")


async def test_c68_a_page_asks_for_the_beta_by_subprotocol(gateway: TalkingGateway) -> None:
    offered = ["realtime", f"openai-insecure-api-key.{API_KEY}", "openai-beta.realtime-v1"]
    async with (
        asyncio.timeout(PATIENCE_S),
        websockets.connect(f"{gateway.ws_url}?model=m", subprotocols=offered) as page,
    ):
        assert page.subprotocol == "realtime"
        created = json.loads(await page.recv())
        assert created["session"]["modalities"] == ["text", "audio"]
        await page.send(json.dumps({"type": "session.update", "session": {"voice": "two"}}))
        assert json.loads(await page.recv())["session"]["voice"] == "two"


async def test_c68_azures_address_of_the_beta_speaks_beta(gateway: TalkingGateway) -> None:
    url = f"ws://127.0.0.1:{gateway.port}/openai/realtime"
    query = "api-version=2024-10-01-preview&deployment=gpt-4o-realtime-preview"
    async with (
        asyncio.timeout(PATIENCE_S),
        websockets.connect(f"{url}?{query}", additional_headers={"api-key": API_KEY}) as caller,
    ):
        created = await caller.recv(decode=False)
        BETA.check(created)
        assert json.loads(created)["session"]["model"] == "gpt-4o-realtime-preview"


async def test_c68_a_beta_phone_call_is_mu_law_both_ways(gateway: TalkingGateway) -> None:
    law = {"input_audio_format": "g711_ulaw", "output_audio_format": "g711_ulaw"}
    async with beta_call(gateway.http_url, API_KEY) as caller:
        await caller.hear("session.created")
        await caller.send(type="session.update", session=law | {"turn_detection": None})
        session = (await caller.hear("session.updated"))["session"]
        assert law.items() <= session.items()
        await caller.send(type="conversation.item.create", item=text("hello"))
        await caller.send(type="response.create")
        done = (await caller.hear("response.done"))["response"]
        assert done["output_audio_format"] == "g711_ulaw"
        deltas = caller.record.of("response.audio.delta")
        mu_law = b"".join(base64.b64decode(delta["delta"]) for delta in deltas)
        # As PCM at 24 kHz it would be six times as many bytes.
        assert 100 * 8 < len(mu_law) < BEEP_RATE_HZ


async def test_c68_a_beta_session_for_transcripts(gateway: TalkingGateway) -> None:
    async with beta_call(gateway.http_url, API_KEY) as caller:
        await caller.hear("session.created")
        await caller.connection.transcription_session.update(
            session={
                "input_audio_format": "pcm16",
                "input_audio_transcription": {"model": "whisper-1"},
                "turn_detection": {"type": "server_vad", "silence_duration_ms": 300},
            }
        )
        session = (await caller.hear("transcription_session.updated"))["session"]
        assert session["input_audio_transcription"]["model"] == "whisper-1"
        await caller.say("hello again")
        completed = await caller.hear("conversation.item.input_audio_transcription.completed")
        assert completed["transcript"] == "hello again"
        assert caller.record.of("response.created") == []
