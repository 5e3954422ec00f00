from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duologue.clients.clip_device import ClipDevice, FrameSchedule
from duologue.clients.errors import CallEnded, SendBufferFull
from duologue.clients.playback import Playback, Taken
from duologue.core.errors import LimitExceeded
from tests.fakes.clock import FakeClock

FRAME_BYTES = 960


class FakeCall:
    """Takes what is said; plays what is put into ``playback``."""

    rate_hz = 24_000
    has_speech = True

    def __init__(self, clock: FakeClock, frames: int) -> None:
        self.said: list[bytes] = []
        self.playback = Playback(24_000)
        self.failure: Exception | None = None
        self._clock = clock
        self._frames = frames
        self.over = asyncio.Event()

    def send_audio(self, pcm: bytes) -> None:
        if self.failure is not None:
            raise self.failure
        self.said.append(pcm)

    def take_audio(self, samples: int) -> Taken:
        self._frames -= 1
        if self._frames <= 0:
            self.over.set()
        return self.playback.take(samples)


async def run(device: ClipDevice, call: FakeCall, clock: FakeClock) -> None:
    """Let the device run; its clock is a frame further each time it looks at the loop."""
    task = asyncio.ensure_future(device.run(call))
    await asyncio.sleep(0)
    clock.advance(1.0)
    await call.over.wait()
    task.cancel()
    await asyncio.wait([task])


async def test_a_clip_is_said_frame_by_frame_and_then_the_room_is_heard() -> None:
    clock = FakeClock()
    call = FakeCall(clock, 50)
    device = ClipDevice(clock=clock)
    assert device.say(b"\x01\x00" * 600) == 0
    assert device.speaking
    await run(device, call, clock)
    assert len(call.said) == 50
    assert {len(frame) for frame in call.said} == {FRAME_BYTES}
    assert b"".join(call.said[:2]) == b"\x01\x00" * 600 + bytes(2 * 360)
    assert call.said[2] != bytes(FRAME_BYTES)
    assert not device.speaking
    assert device.said_samples == 24_000


async def test_both_directions_are_told_on_one_timeline() -> None:
    frames: list[tuple[bytes, Taken]] = []
    clock = FakeClock()
    call = FakeCall(clock, 50)
    device = ClipDevice(clock=clock, on_frame=lambda said, played: frames.append((said, played)))
    call.playback.put("a", 0, b"\x05\x00" * 480)
    await run(device, call, clock)
    assert frames[0][1].pcm == b"\x05\x00" * 480
    assert frames[1][1].runs == ((None, 480),)
    assert [said for said, _ in frames] == call.said


async def test_the_next_clip_starts_where_it_was_promised() -> None:
    clock = FakeClock()
    call = FakeCall(clock, 50)
    device = ClipDevice(clock=clock)
    device.say(b"\x01\x00" * 100)
    start = device.say(b"\x02\x00" * 100)
    await run(device, call, clock)
    assert b"".join(call.said)[start * 2 :].startswith(b"\x02\x00" * 100)


async def test_what_the_network_does_not_take_is_dropped_and_counted() -> None:
    clock = FakeClock()
    call = FakeCall(clock, 50)
    call.failure = SendBufferFull("full")
    device = ClipDevice(clock=clock)
    await run(device, call, clock)
    assert device.dropped_frames == 50


async def test_after_the_other_side_hung_up_the_rest_is_still_heard() -> None:
    clock = FakeClock()
    call = FakeCall(clock, 50)
    call.failure = CallEnded("over")
    heard: list[Taken] = []
    device = ClipDevice(clock=clock, on_frame=lambda _, played: heard.append(played))
    await run(device, call, clock)
    assert len(heard) == 50
    assert device.silence() == 0


def test_clips_are_bounded() -> None:
    device = ClipDevice(noise=0)
    device.say(bytes(2 * 24_000 * 590))
    with pytest.raises(LimitExceeded, match="610 s of clips would wait, the limit is 600 s"):
        device.say(bytes(2 * 24_000 * 20))


def test_a_room_without_noise_is_silent() -> None:
    assert set(ClipDevice(noise=0)._room) == {0}
    assert ClipDevice(seed=1)._room != ClipDevice(seed=2)._room


@given(st.lists(st.floats(0.0, 0.3), max_size=50))
def test_delays_of_the_schedule_do_not_add_up(steps: list[float]) -> None:
    schedule = FrameSchedule(10.0, 0.02)
    now, handed_out = 10.0, 0
    for step in steps:
        now += step
        handed_out += schedule.due(now)
        assert schedule.frames == handed_out
        assert abs(handed_out - (now - 10.0) / 0.02) <= 1
        assert now - 0.02 - 1e-6 <= schedule.next_at - 0.02 + 0.02
    assert schedule.due(now - 1) == 0
