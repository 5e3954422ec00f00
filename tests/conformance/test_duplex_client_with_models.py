"""vLLM-Omni's duplex client asks the real models one question, and interrupts the answer to it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
import soundfile
import soxr

from duologue.app import running_app
from duologue.gateway.settings import GatewaySettings
from duologue.settings import Settings
from tests.conformance.peer_caller import peer_client
from tests.patience import PATIENCE_S

pytestmark = [pytest.mark.models, pytest.mark.peer]

QUESTIONS = Path(__file__).parents[2] / "duologue" / "assets" / "questions"
RATE_HZ = 16_000
QUIET = bytes(RATE_HZ * 2)


def question(name: str) -> bytes:
    samples, rate_hz = soundfile.read(QUESTIONS / f"{name}.flac", dtype="int16")
    return bytes(soxr.resample(samples, rate_hz, RATE_HZ).tobytes())


async def test_a_question_is_answered_and_the_next_answer_interrupted() -> None:
    peer = peer_client()
    door = GatewaySettings(port=0, drain_timeout_s=0)
    async with running_app(Settings(gateway=door)) as app:
        url = app.url.replace("http", "ws")
        collector = peer.EventCollector()
        async with peer.DuplexClient(url, model="duologue", config=peer.SessionConfig()) as client:
            listener = asyncio.create_task(collector.consume(client))
            await client.stream_pcm(question("france") + QUIET, chunk_ms=100)
            async for response in client.responses():
                audio = b"".join([chunk async for chunk in response.audio()])
                await client.ack_playback(response.played_ms, response_id=response.response_id)
                break
            assert "Paris" in response.transcript
            assert len(audio) > 24_000
            await client.stream_pcm(question("bees"), chunk_ms=100)
            await client.stream_pcm(QUIET * 2, chunk_ms=100)
            await peer.wait_for_condition(
                lambda: collector.count("response.speak") == 2, timeout_s=60, label="an answer"
            )
            await client.send({"type": "barge_in"})
            await peer.wait_for_condition(
                lambda: collector.count("response.done") == 2, timeout_s=60, label="its end"
            )
            await client.close()
            await listener
        assert collector.errors() == []
        assert collector.events[-1]["type"] == "session.closed"
        await app.sessions.wait_empty(PATIENCE_S)
        assert len(app.sessions) == 0
