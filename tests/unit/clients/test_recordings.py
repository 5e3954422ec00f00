from __future__ import annotations

import asyncio

from duologue.clients.recordings import AT_ONCE_BYTES, say_at_once, say_in_real_time
from tests.fakes.clock import FakeClock

FRAME = 4800


class FakeCall:
    def __init__(self) -> None:
        self.said: list[bytes] = []
        self.drained = 0
        self.said_three = asyncio.Event()

    def send_audio(self, pcm: bytes) -> None:
        self.said.append(pcm)
        if len(self.said) == 3:
            self.said_three.set()

    async def drain(self) -> None:
        self.drained += 1
        await asyncio.sleep(0)


async def test_a_recording_is_said_at_its_own_pace_and_then_there_is_silence() -> None:
    call, clock = FakeCall(), FakeClock(5.0)
    recording = b"\x01" * (FRAME + 100)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(say_in_real_time(call, recording, clock))
        await asyncio.sleep(0)
        assert call.said == []
        clock.advance(0.3)
        await call.said_three.wait()
        task.cancel()
    assert b"".join(call.said) == recording + bytes(2 * FRAME - 100)
    assert call.drained == 3


async def test_a_recording_is_said_at_once_in_pieces_that_find_room() -> None:
    call = FakeCall()
    recording = b"\x01" * (2 * AT_ONCE_BYTES + 2)
    await say_at_once(call, recording)
    assert b"".join(call.said) == recording
    assert max(map(len, call.said)) == AT_ONCE_BYTES
    assert call.drained == 3
