"""C07: fifty turns are fifty answers, also where each falls into the answer before."""

from __future__ import annotations

import asyncio
import random
from statistics import median

from duologue.clients import ClipDevice
from duologue.protocol.events import AudioCommitted, SpeechStarted
from duologue.protocol.response_events import ResponseCreated, ResponseDone
from tests.soak.long_cases.people import Caller, Figures, calling, quiet, voice

TURNS = 50


async def c07_calm(url: str) -> Figures:
    """Fifty turns, each after the answer before and some seconds more, are fifty answers."""
    device, chance = ClipDevice(), random.Random(7)
    async with calling(url, "short", device) as caller:
        for number in range(1, TURNS + 1):
            device.say(voice(1500) + quiet(900))
            await caller.until(ResponseDone, number)
            await asyncio.sleep(chance.uniform(0, 5))
        assert caller.ends() == ["completed"] * TURNS, caller.ends()
        return _in_turn(caller)


async def c07_over_answers(url: str) -> Figures:
    """Fifty turns that each end inside the answer before."""
    device = ClipDevice()
    async with calling(url, "long", device) as caller:
        for number in range(1, TURNS + 1):
            device.say(voice(1500) + quiet(900))
            await caller.until(ResponseCreated, number)
            await caller.call.wait_until(lambda: caller.call.playback.speaking is not None)
            await asyncio.sleep(0.4)
        await caller.until(ResponseDone, TURNS, 60)
        assert caller.ends() == ["cancelled"] * (TURNS - 1) + ["completed"], caller.ends()
        return _in_turn(caller)


def _in_turn(caller: Caller) -> Figures:
    """Check that each turn was heard once, and answered once, soon."""
    commits, answers = caller.times(AudioCommitted), caller.times(ResponseCreated)
    assert len(caller.of(SpeechStarted)) == len(commits) == len(answers) == TURNS
    waits = [answer - commit for commit, answer in zip(commits, answers, strict=True)]
    assert 0 <= min(waits) <= max(waits) <= 0.5, waits
    return {
        "turns": TURNS,
        "created_after_ms": round(median(waits) * 1000, 1),
        "worst_ms": round(max(waits) * 1000, 1),
    }
