"""People who talk through our own client, and what they sound like."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import numpy as np

from duologue.clients import Device, DuplexClient
from duologue.clients.client import SessionChanges
from duologue.protocol.errors import ErrorCode
from duologue.protocol.events import ErrorEvent, Event
from duologue.protocol.response_events import ResponseDone
from tests.soak.recorded_voice import RATE_HZ

E = TypeVar("E", bound=Event)

FRAME_BYTES = RATE_HZ * 2 // 50
VOICE_LEVEL = 0.1
FAN_DBFS = -40.0

Figures = Mapping[str, float]
"""What a case has measured, by name."""


class Caller:
    """One call, with a note of when each event came."""

    def __init__(self, call: DuplexClient) -> None:
        self.call = call
        self.noted: list[tuple[float, Event]] = []

    async def listen(self) -> None:
        """Note all that comes."""
        async for event in self.call.events():
            assert isinstance(event, Event), event
            if isinstance(event, ErrorEvent):
                # Whoever asks while another answer begins is told so, and asks again.
                assert event.error.code == ErrorCode.RESPONSE_ACTIVE, event
            self.noted.append((time.monotonic(), event))

    def of(self, kind: type[E]) -> list[E]:
        return [event for _, event in self.noted if isinstance(event, kind)]

    def times(self, kind: type[Event]) -> list[float]:
        return [at for at, event in self.noted if isinstance(event, kind)]

    async def until(self, kind: type[Event], count: int, timeout_s: float = 30) -> None:
        """Wait until so many have come."""
        await self.call.wait_until(lambda: len(self.times(kind)) >= count, timeout_s)

    def ends(self) -> list[str]:
        """How each answer ended."""
        return [event.response.status for event in self.of(ResponseDone)]


@asynccontextmanager
async def calling(
    url: str, model: str, device: Device | None, **changes: Any
) -> AsyncIterator[Caller]:
    """Hold a call; any error that the server tells of fails the case."""
    given: SessionChanges = {"turn_detection": "server_vad", **changes}  # type: ignore[typeddict-item]
    async with (
        DuplexClient.connect(url, model=model, device=device, **given) as call,
        asyncio.TaskGroup() as group,
    ):
        caller = Caller(call)
        listening = group.create_task(caller.listen())
        yield caller
        listening.cancel()


def voice(ms: int) -> bytes:
    """A buzz with the level of speech."""
    at = np.arange(RATE_HZ * ms // 1000) / RATE_HZ
    return pcm16(VOICE_LEVEL * np.sqrt(2) * np.sin(2 * np.pi * 220 * at))


def quiet(ms: int) -> bytes:
    return bytes(RATE_HZ * ms // 1000 * 2)


def fan(ms: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    return 10 ** (FAN_DBFS / 20) * np.random.default_rng(1).standard_normal(RATE_HZ * ms // 1000)


def pcm16(samples: np.ndarray[Any, np.dtype[Any]]) -> bytes:
    return (np.clip(samples, -1, 1) * 32767).astype("<i2").tobytes()
