"""C41: a fan is nobody, and a short word over it is somebody."""

from __future__ import annotations

import numpy as np

from duologue.clients import ClipDevice
from duologue.protocol.events import AudioCommitted, SpeechStarted
from duologue.protocol.response_events import ResponseDone
from duologue.protocol.session_patch import TurnDetectionPatch
from tests.soak.long_cases.people import Figures, calling, fan, pcm16
from tests.soak.recorded_voice import RATE_HZ

WORD_DBFS = -26.0
CERTAIN = 0.95
"""Probability of speech that a fan does not reach, and a word does."""


async def c41_a_fan(url: str) -> Figures:
    """Five minutes of a fan are nobody; a short word over it is a turn."""
    device = ClipDevice()
    certain = TurnDetectionPatch(type="server_vad", threshold=CERTAIN)
    async with calling(url, "short", device, turn_detection=certain) as caller:
        device.say(pcm16(fan(300_000)))
        await caller.call.wait_until(lambda: not device.speaking, 330)
        assert caller.of(SpeechStarted) == []
        at = np.arange(RATE_HZ // 5) / RATE_HZ
        over = fan(2000)
        over[12_000 : 12_000 + len(at)] += (
            10 ** (WORD_DBFS / 20) * np.sqrt(2) * np.sin(2 * np.pi * 220 * at)
        )
        device.say(pcm16(over))
        await caller.until(ResponseDone, 1)
        assert len(caller.of(SpeechStarted)) == len(caller.of(AudioCommitted)) == 1
        return {"seconds_of_fan": 300, "turns": 1}
