"""vLLM-Omni's duplex client holds a call; nothing but its address is not vLLM-Omni's."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from duologue.gateway.settings import GatewaySettings
from duologue.settings import Settings
from tests.conformance.peer_caller import peer_client
from tests.conformance.talking_gateway import (
    MODEL,
    TalkingGateway,
    talking_gateway,
    talking_settings,
    with_lead,
)
from tests.faults.scripted_models import BEEP_RATE_HZ, beeps
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.peer

QUIET = bytes(BEEP_RATE_HZ * 2)
"""A second of silence."""


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """A gateway without keys, since this client has no way to present one."""
    monkeypatch.syspath_prepend(tmp_path)
    return talking_settings(tmp_path, gateway=GatewaySettings())


class Call:
    """The client and all that came to it."""

    def __init__(self, client: Any, collector: Any) -> None:
        self.client = client
        self.collector = collector

    @property
    def events(self) -> list[dict[str, Any]]:
        return self.collector.events

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["type"] == kind]

    async def came(self, kind: str, count: int = 1) -> dict[str, Any]:
        """Wait for so many events of a kind; the last of them."""
        peer = peer_client()
        await peer.wait_for_condition(
            lambda: len(self.of(kind)) >= count, timeout_s=PATIENCE_S, label=kind
        )
        return self.of(kind)[count - 1]


def config(**more: Any) -> Any:
    peer = peer_client()
    return peer.SessionConfig(
        input_audio=peer.AudioFormat("pcm16", BEEP_RATE_HZ),
        turn_detection={"type": "server_vad", "silence_duration_ms": 300},
        **more,
    )


async def held_call(gateway: TalkingGateway, path: str, session: Any, talk: Any) -> Call:
    """Hold a call from connect to close, and check what holds for each."""
    peer = peer_client()
    collector = peer.EventCollector()
    client = peer.DuplexClient(f"ws://127.0.0.1:{gateway.port}{path}", model=MODEL, config=session)
    async with asyncio.timeout(PATIENCE_S), client:
        listener = asyncio.create_task(collector.consume(client))
        await asyncio.sleep(0)
        call = Call(client, collector)
        await talk(call)
        await client.close()
        await listener
    assert call.events[-1]["type"] == "session.closed"
    assert collector.errors() == []
    sent = [event for event in call.events if event["type"] != "connection.resumed"]
    numbers = [e["server_event_seq"] for e in sent if e["type"] != "session.resumed"]
    assert numbers == sorted(set(numbers))
    assert all(isinstance(event["event_id"], str) for event in sent)
    return call


@pytest.mark.parametrize("path", ["", "/v1/duplex", "/v1/realtime"])
async def test_a_spoken_question_is_answered_and_the_session_closed(
    settings: Settings, path: str
) -> None:
    async def talk(call: Call) -> None:
        client = call.client
        assert client.session_id.startswith("sess_")
        able = client.session_info["capabilities"]
        assert able["implementation_level"] == "turn_based_duplex"
        assert able["supports_barge_in"]
        assert able["supports_session_resume"]
        assert client.resume_token
        await client.stream_pcm(beeps("hello again") + QUIET, chunk_ms=100)
        async for response in client.responses():
            assert response.decision == "speak"
            audio = b"".join([chunk async for chunk in response.audio()])
            assert response.transcript == "Well, you said hello again."
            assert len(audio) > BEEP_RATE_HZ * 2 * 200 // 1000
            await client.ack_playback(
                response.played_ms,
                response_id=response.response_id,
                item_id=f"item_{response.response_id}",
            )
            break
        acknowledged = (await call.came("playback.acknowledged"))["event"]
        assert acknowledged["played_ms"] == pytest.approx(response.played_ms, abs=1)
        assert acknowledged["history_committed"]
        playback = acknowledged["playback"]
        assert playback["generated_ms"] == playback["sent_ms"] == playback["committed_ms"]

    async with talking_gateway(settings) as gateway:
        call = await held_call(gateway, path, config(), talk)
        delta = call.of("response.output_audio.delta")[0]
        assert (delta["format"], delta["sample_rate_hz"]) == ("pcm16", 24000)
        created = call.of("response.created")[0]
        assert created["response_id"] == created["response"]["id"]
        turns = [event["event"] for event in call.of("turn.event")]
        assert (turns[0], turns[-1]) == ("user_started", "user_committed")


async def test_a_call_whose_connection_breaks_in_mid_answer_goes_on(settings: Settings) -> None:
    async def talk(call: Call) -> None:
        client = call.client
        await client.stream_pcm(beeps("hello again") + QUIET, realtime=False)
        await call.came("response.output_audio.delta")
        token = client.resume_token
        client._ws.transport.abort()
        resumed = await call.came("session.resumed")
        assert resumed["attachment_generation"] == 2
        assert client.resume_token not in (None, token)
        done = await call.came("response.done")
        assert done["response"]["status"] == "completed"
        assert len(call.of("response.done")) == len(call.of("response.created")) == 1
        said = "".join(
            event["delta"] for event in call.of("response.output_audio_transcript.delta")
        )
        assert said == call.of("response.output_audio_transcript.done")[0]["transcript"]
        assert call.of("session.resync_required") == []

    patient = settings.sessions.model_copy(update={"disconnect_grace_s": 20.0})
    settings = settings.model_copy(update={"sessions": patient})
    async with talking_gateway(with_lead(settings, 300)) as gateway:
        await held_call(gateway, "", config(), talk)


async def test_both_may_talk_and_the_louder_one_interrupts(settings: Settings) -> None:
    async def talk(call: Call) -> None:
        client = call.client
        await client.stream_pcm(beeps("long") + QUIET, realtime=False)
        first = await call.came("response.output_audio.delta")
        await client.ack_playback(150, response_id=first["response_id"])
        await call.came("playback.acknowledged")
        await client.stream_pcm(beeps("hello again hello again") + QUIET, chunk_ms=60)
        cut = await call.came("response.done")
        assert cut["response"]["status"] == "cancelled"
        assert cut["response"]["status_details"]["reason"] == "turn_detected"
        decided = call.of("overlap.decision")[0]
        assert (decided["action"], decided["policy"]) == ("barge_in", "barge_in_on_speech")
        truncated = await call.came("conversation.item.truncated")
        assert truncated["audio_end_ms"] == 150
        await call.came("response.done", 2)
        await client.ack_playback(100, response_id=first["response_id"])
        late = (await call.came("playback.acknowledged", 2))["event"]
        assert late["epoch"] == 1
        assert late["played_ms"] == 150

    async with talking_gateway(with_lead(settings, 500)) as gateway:
        await held_call(gateway, "", config(overlap_policy="barge_in_on_speech"), talk)


async def test_the_client_commits_cancels_and_clears_by_itself(settings: Settings) -> None:
    async def talk(call: Call) -> None:
        client = call.client
        await client.stream_pcm(beeps("long"), realtime=False)
        await client.commit()
        await call.came("response.output_audio.delta")
        await client.cancel_response()
        done = await call.came("response.done")
        assert done["response"]["status_details"]["reason"] == "client_cancelled"
        await client.clear_input()
        await call.came("input_audio_buffer.cleared")
        await client.commit()
        listened = await call.came("response.listen")
        assert listened["response"]["reason"] == "silence_or_noise"
        await client.send({"type": "session.heartbeat"})
        await call.came("session.heartbeat_ack")
        await client.send({"type": "push_text", "text": "hello"})
        await client.send({"type": "response.create"})
        await call.came("response.done", 2)

    async with talking_gateway(with_lead(settings, 500)) as gateway:
        await held_call(gateway, "", config(), talk)


async def test_a_function_is_called_and_its_output_answered(settings: Settings) -> None:
    """The client has no words of its own for functions; it passes on those of the dialect."""
    tool = {"type": "function", "name": "weather", "parameters": {"type": "object"}}

    async def talk(call: Call) -> None:
        await call.client.send({"type": "session.update", "session": {"tools": [tool]}})
        await call.client.stream_pcm(beeps("hello weather") + QUIET, chunk_ms=100)
        asked = await call.came("response.function_call_arguments.done")
        assert asked["name"] == "weather"
        await call.came("response.done")
        output = {"type": "function_call_output", "call_id": asked["call_id"], "output": "sun"}
        await call.client.send({"type": "conversation.item.create", "item": output})
        await call.client.send({"type": "response.create"})
        said = await call.came("response.output_audio_transcript.done")
        assert said["transcript"] == "Well, you said sun."
        await call.came("response.done", 2)

    async with talking_gateway(settings) as gateway:
        await held_call(gateway, "", config(), talk)


async def test_the_default_session_of_the_client_leaves_turns_to_the_server(
    settings: Settings,
) -> None:
    peer = peer_client()

    async def talk(call: Call) -> None:
        assert call.client.session_info["turn_detection"] is None
        assert call.client.session_info["sample_rate_hz"] == 24000
        await call.client.stream_pcm(beeps("hello") + QUIET + QUIET, chunk_ms=100)
        await call.came("response.done")

    session = peer.SessionConfig(
        input_audio=peer.AudioFormat("pcm16", BEEP_RATE_HZ), playback_commit_policy="ack_only"
    )
    async with talking_gateway(settings) as gateway:
        await held_call(gateway, "", session, talk)


@pytest.mark.parametrize("more", [{"ref_audio": "data:audio/wav;base64,AAAA"}, {"voice": "nobody"}])
async def test_a_session_that_cannot_be_is_refused_with_a_reason(
    settings: Settings, more: dict[str, Any]
) -> None:
    peer = peer_client()
    async with talking_gateway(settings) as gateway:
        client = peer.DuplexClient(
            f"ws://127.0.0.1:{gateway.port}", model=MODEL, config=config(**more)
        )
        with pytest.raises(peer.DuplexProtocolError) as refused:
            async with client:
                pass
        assert refused.value.code in ("unsupported", "invalid_value")
        assert next(iter(more)) in str(refused.value)
