"""A call over WebRTC with the real models: Opus both ways, an answer, an interruption, the end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

import numpy as np
import pytest

from duologue.app import running_app
from duologue.gateway.settings import GatewaySettings
from duologue.gateway.webrtc.settings import WebRtcSettings
from duologue.settings import Settings
from tests.conformance.webrtc_caller import WebRtcCaller, loopback, webrtc_call
from tests.models.test_phone_call import question

__all__ = ["loopback"]

pytestmark = [pytest.mark.models, pytest.mark.usefixtures("loopback")]

LOUD = 500
FRAMES_PER_S = 50
STOP_FRAMES = 10
"""What is on its way, or in the listener's jitter buffer, when the answer is stopped."""


async def until(caller: WebRtcCaller, condition: Callable[[], bool]) -> None:
    """Wait as long as models on a busy machine may take."""
    async with asyncio.timeout(90):
        while not condition():
            with suppress(TimeoutError):
                await caller.until(condition)


def loud(caller: WebRtcCaller, start: int = 0) -> int:
    """How many frames in which somebody speaks came since then."""
    return sum(int(np.abs(frame).max()) > LOUD for frame in caller.heard[start:])


async def test_a_person_calls_by_webrtc() -> None:
    door = GatewaySettings(
        port=0, drain_timeout_s=0, webrtc=WebRtcSettings(bind_address="127.0.0.1")
    )
    async with running_app(Settings(gateway=door)) as app, asyncio.timeout(200):
        base = f"http://127.0.0.1:{app.url.rpartition(':')[2]}/v1"
        async with webrtc_call(base) as caller:
            assert caller.microphone is not None
            transcription = {"transcription": {"model": "whisper-1"}}
            session = {"type": "realtime", "audio": {"input": transcription}}
            caller.send("session.update", session=session)
            caller.microphone.say(question("france"))
            await until(caller, lambda: bool(caller.of("response.done")))
            (said,) = caller.of("response.output_audio_transcript.done")
            assert "Paris" in said["transcript"]
            await until(caller, lambda: bool(caller.of("output_audio_buffer.stopped")))
            assert loud(caller) > FRAMES_PER_S // 4
            heard = "conversation.item.input_audio_transcription.completed"
            await until(caller, lambda: bool(caller.of(heard)))
            assert "France" in caller.of(heard)[0]["transcript"]

            asked_at = len(caller.heard)
            caller.microphone.say(question("bees"))
            await until(caller, lambda: loud(caller, asked_at) > FRAMES_PER_S // 2)
            caller.microphone.say(question("months"))
            await until(caller, lambda: bool(caller.of("output_audio_buffer.cleared")))
            cleared_at = len(caller.heard)
            await until(caller, lambda: len(caller.of("response.done")) > 1)
            # Its making may have ended before its playing was stopped.
            cut = caller.of("response.done")[1]["response"]
            assert cut["status"] in ("completed", "cancelled")
            (cleared,) = caller.of("output_audio_buffer.cleared")
            assert cleared["response_id"] == cut["id"]
            (truncated,) = caller.of("conversation.item.truncated")
            assert truncated["item_id"] == cut["output"][0]["id"]
            assert truncated["audio_end_ms"] > 300
            await until(caller, lambda: len(caller.heard) > cleared_at + 3 * STOP_FRAMES)
            after = slice(cleared_at + STOP_FRAMES, cleared_at + 3 * STOP_FRAMES)
            assert not any(int(np.abs(frame).max()) > LOUD for frame in caller.heard[after])
            await until(caller, lambda: len(caller.of("response.done")) > 2)
            assert caller.of("response.done")[2]["response"]["status"] == "completed"
            assert caller.of("error") == []
        await app.sessions.wait_empty(5)
        assert len(app.sessions) == 0
