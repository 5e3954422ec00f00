"""Recordings that are said into a call, for calls that have no microphone.

This module must not know what is answered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Protocol, TypeVar

from duologue.clients.clip_device import FrameSchedule
from duologue.clients.playback import RATE_HZ
from duologue.core.audio import SAMPLE_BYTES, ms_to_samples
from duologue.core.clock import Clock

T = TypeVar("T")
StartTask = Callable[[str, Coroutine[Any, Any, None]], asyncio.Task[None]]

FRAME_MS = 100
AT_ONCE_BYTES = RATE_HZ * SAMPLE_BYTES * 5
"""Handed over before it is waited for: a quarter of what may wait to be sent."""


class Speaker(Protocol):
    """Who says it: a call."""

    def send_audio(self, pcm: bytes) -> None:
        """Say something: s16le mono at 24 kHz."""
        ...

    async def drain(self) -> None:
        """Wait until everything that was said is on its way."""
        ...


async def say_until_answered(
    call: Speaker, pcm: bytes, clock: Clock, start: StartTask, answer: Awaitable[T]
) -> T:
    """Say a recording as a person would, and return what answers it.

    Args:
        start: Starts a task that ends with the call.
    """
    speaking = start("client-recording", say_in_real_time(call, pcm, clock))
    try:
        return await answer
    finally:
        speaking.cancel()


async def say_in_real_time(call: Speaker, pcm: bytes, clock: Clock) -> None:
    """Say a recording at the pace of a person, and then silence, until cancelled.

    Silence is what ends the turn, as it does with a microphone.
    """
    size = ms_to_samples(FRAME_MS, RATE_HZ) * SAMPLE_BYTES
    schedule = FrameSchedule(clock.now(), FRAME_MS / 1000)
    said = 0
    while True:
        for _ in range(schedule.due(clock.now())):
            await call.drain()
            call.send_audio(pcm[said : said + size].ljust(size, b"\0"))
            said += size
        await asyncio.sleep(max(0.0, schedule.next_at - clock.now()))


async def say_at_once(call: Speaker, pcm: bytes) -> None:
    """Say a recording as fast as the server takes it."""
    for start in range(0, len(pcm), AT_ONCE_BYTES):
        call.send_audio(pcm[start : start + AT_ONCE_BYTES])
        await call.drain()
