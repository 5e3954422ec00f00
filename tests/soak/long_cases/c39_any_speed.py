"""C39: turns are found in audio time, however fast or slowly audio comes."""

from __future__ import annotations

import asyncio
import time

from duologue.protocol.events import SpeechStarted, SpeechStopped
from tests.soak.long_cases.people import FRAME_BYTES, Caller, Figures, calling, quiet, voice

UTTERANCES = ((1000, 1400), (3200, 1000), (5600, 2200), (9400, 900))
"""Beginning and length, in a recording of twelve seconds."""


async def c39_at_half_speed(url: str) -> Figures:
    return await _four_turns(url, 0.5)


async def c39_ten_times_as_fast(url: str) -> Figures:
    return await _four_turns(url, 10)


async def _four_turns(url: str, speed: float) -> Figures:
    """Turns are found in audio time, at any speed."""
    async with calling(url, "short", None) as caller:
        await _send(caller, recording(), speed)
        await caller.until(SpeechStopped, 4)
        starts = [event.audio_start_ms for event in caller.of(SpeechStarted)]
        stops = [event.audio_end_ms for event in caller.of(SpeechStopped)]
        off = [abs(a - max(0, b - 300)) for a, (b, _) in zip(starts, UTTERANCES, strict=True)]
        off += [abs(a - b - ms) for a, (b, ms) in zip(stops, UTTERANCES, strict=True)]
        assert max(off) <= 30, (starts, stops)
        return {"turns": len(starts), "worst_ms": max(off)}


async def c39_a_gap(url: str) -> Figures:
    """Three seconds without a packet are no silence."""
    async with calling(url, "short", None) as caller:
        await _send(caller, quiet(500) + voice(600))
        await asyncio.sleep(3)
        assert caller.of(SpeechStopped) == []
        await _send(caller, voice(600) + quiet(800))
        await caller.until(SpeechStopped, 1)
        (stopped,) = caller.of(SpeechStopped)
        assert abs(stopped.audio_end_ms - 1700) <= 30, stopped
        assert len(caller.of(SpeechStarted)) == 1
        return {"turns": 1, "end_ms": stopped.audio_end_ms}


async def _send(caller: Caller, pcm: bytes, speed: float = 1.0) -> None:
    began = time.monotonic()
    for n, start in enumerate(range(0, len(pcm), FRAME_BYTES), 1):
        caller.call.send_audio(pcm[start : start + FRAME_BYTES])
        await asyncio.sleep(max(0.0, began + n * 0.020 / speed - time.monotonic()))


def recording() -> bytes:
    parts, at = [], 0
    for start, length in UTTERANCES:
        parts += [quiet(start - at), voice(length)]
        at = start + length
    return b"".join((*parts, quiet(12_000 - at)))
