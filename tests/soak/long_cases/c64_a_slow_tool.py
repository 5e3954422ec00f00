"""C64: a function that blocks for half a minute holds up nobody."""

from __future__ import annotations

import asyncio
import time

from duologue.clients import ClipDevice, Tool
from duologue.protocol.events import SpeechStarted
from duologue.protocol.response_events import ResponseCreated
from tests.soak.long_cases.people import Figures, calling, voice
from tests.soak.recorded_voice import RATE_HZ


async def c64_a_slow_tool(url: str) -> Figures:
    """A function blocks for 30 s while the person talks on and interrupts twice."""
    runs: list[str] = []

    def weather(city: str) -> str:
        runs.append(city)
        time.sleep(30)
        return f"sunny in {city}"

    device = ClipDevice()
    slow = Tool(weather, timeout_s=60)
    async with calling(url, "caller", device, tools=[slow]) as caller:
        answers = caller.call.responses()
        device.say(voice(500))
        assert [each.name for each in (await (await anext(answers)).finished()).calls] == [
            "weather"
        ]
        called = time.monotonic()
        for number in range(2):
            await asyncio.sleep(4)
            device.say(voice(700))
            await caller.until(ResponseCreated, number + 2)
            await caller.call.wait_until(lambda: caller.call.playback.speaking is not None)
            await anext(answers)
        result = await (await anext(answers)).finished()
        waited_s = time.monotonic() - called
        assert result.text == "So: sunny in Nice.", result.text
        assert runs == ["Nice"]
        assert waited_s >= 30
        assert len(caller.of(SpeechStarted)) == 3
        gaps_ms = caller.call.playback.gap_samples / RATE_HZ * 1000
        assert gaps_ms <= 100, gaps_ms
        return {"answered_after_s": round(waited_s, 1), "gaps_ms": round(gaps_ms)}
