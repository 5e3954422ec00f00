"""C08: speech that never ends is one turn, ended at the limit."""

from __future__ import annotations

import asyncio

import numpy as np

from duologue.clients import ClipDevice
from duologue.protocol.events import AudioCommitted, SpeechStarted, SpeechStopped
from duologue.protocol.response_events import ResponseDone
from tests.soak.long_cases.people import Figures, calling, fan, pcm16, quiet, voice


async def c08_speech_that_never_ends(url: str) -> Figures:
    """Ninety seconds of voiced noise are one turn, ended at the limit; then all is as before."""
    device = ClipDevice()
    async with calling(url, "short", device) as caller:
        noise = np.frombuffer(voice(90_000), "<i2") / 32768 + fan(90_000)
        device.say(pcm16(noise))
        await caller.until(AudioCommitted, 1, 80)
        await caller.call.wait_until(lambda: not device.speaking, 60)
        (started,), (stopped,) = caller.of(SpeechStarted), caller.of(SpeechStopped)
        turn_ms = stopped.audio_end_ms - started.audio_start_ms
        assert abs(turn_ms - 60_000) < 100, turn_ms
        await asyncio.sleep(1)
        device.say(voice(1500) + quiet(900))
        await caller.until(ResponseDone, 2)
        assert caller.ends() == ["completed"] * 2
        assert len(caller.of(AudioCommitted)) == 2
        return {"turn_ms": turn_ms}
