"""What no peer can bring about; the contracts beside this file have the rest."""

from __future__ import annotations

import asyncio

from aiohttp import WSMsgType

from duologue.core.wheel import TimerWheel
from duologue.gateway.ws.channel import (
    HIGH_WATER_BYTES,
    MAX_WAITING_PONG_BYTES,
    Channel,
    ChannelTiming,
)
from duologue.gateway.ws.frames import close_frame, ping_frame, pong_frame
from tests.fakes.clock import FakeClock


class FakeTransport:
    """Holds ``waiting`` bytes that nobody takes."""

    def __init__(self) -> None:
        self.waiting = 0
        self.written: list[bytes] = []
        self.calls: list[str] = []

    def set_write_buffer_limits(self, high: int) -> None:
        assert high == HIGH_WATER_BYTES - 1

    def get_extra_info(self, name: str) -> None:
        assert name == "socket"

    def get_write_buffer_size(self) -> int:
        return self.waiting

    def is_closing(self) -> bool:
        return bool(self.calls)

    def write(self, data: bytes) -> None:
        assert not self.calls, "written after the end"
        self.written.append(data)

    def can_write_eof(self) -> bool:
        return False

    def close(self) -> None:
        self.calls.append("close")

    def abort(self) -> None:
        self.calls.append("abort")


class IdleChannel(Channel):
    """Reads nothing by itself."""

    held: tuple[bool, ...] = ()

    def hold(self, on: bool) -> None:
        self.held += (on,)

    async def _read(self) -> None:
        await self._read_out


class Scene:
    def __init__(self) -> None:
        self.clock = FakeClock(100.0)
        self.wheel = TimerWheel(self.clock.call_at)
        self.transport = FakeTransport()
        timing = ChannelTiming(self.clock, self.wheel, heartbeat_s=20.0, close_timeout_s=2.0)
        self.channel = IdleChannel(self.transport, None, timing)
        self.messages: list[bytes] = []

    async def run(self) -> None:
        await self.channel.run(self.messages.append)
        await self.channel.finish()
        self.channel.release()


async def running(scene: Scene) -> asyncio.Task[None]:
    task = asyncio.create_task(scene.run())
    await asyncio.sleep(0)
    return task


async def test_a_silent_peer_is_asked_and_given_up_by_the_clock_of_the_server() -> None:
    scene = Scene()
    task = await running(scene)
    scene.clock.advance(19.9)
    assert scene.transport.written == []
    scene.clock.advance(0.2)
    assert scene.transport.written == [ping_frame()]
    scene.clock.advance(5)
    scene.channel._heard()
    scene.clock.advance(19.9)
    assert scene.transport.written == [ping_frame()]
    scene.clock.advance(0.2)
    assert scene.transport.written == [ping_frame()] * 2
    scene.clock.advance(10.1)
    assert scene.transport.calls == ["abort"]
    await task
    assert len(scene.wheel) == 0


async def test_a_peer_that_was_to_wait_is_read_after_our_goodbye() -> None:
    scene = Scene()
    task = await running(scene)
    scene.channel.hold(True)
    scene.channel.close(1000, "")
    assert scene.channel.held == (True, False)
    scene.channel.on_control(WSMsgType.CLOSE, 1000)
    await task


async def test_the_heartbeat_says_nothing_after_our_goodbye() -> None:
    scene = Scene()
    task = await running(scene)
    scene.clock.advance(19.9)
    scene.channel.close(1000, "")
    scene.clock.advance(1.9)
    assert scene.transport.written == [close_frame(1000, "")]
    scene.clock.advance(0.2)
    assert scene.transport.calls == ["abort"]
    await task


async def test_the_time_for_the_end_is_set_once() -> None:
    scene = Scene()
    task = await running(scene)
    scene.channel.expire()
    scene.clock.advance(1.5)
    scene.channel.expire()
    scene.channel.close(1000, "")
    scene.clock.advance(0.6)
    assert scene.transport.calls == ["abort"]
    await task


async def test_a_goodbye_is_written_whatever_waits_before_it() -> None:
    scene = Scene()
    task = await running(scene)
    scene.transport.waiting = 10 * HIGH_WATER_BYTES
    assert not scene.channel.can_send()
    scene.channel.close(1013, "too slow")
    assert scene.transport.written == [close_frame(1013, "too slow")]
    scene.channel.on_control(WSMsgType.CLOSE, 1013)
    await task
    assert scene.transport.calls == ["close"]
    scene.clock.advance(2.1)
    assert scene.transport.calls == ["close", "abort"]
    assert len(scene.wheel) == 0


async def test_a_pong_may_pass_the_high_water_and_no_higher_mark() -> None:
    scene = Scene()
    task = await running(scene)
    scene.transport.waiting = MAX_WAITING_PONG_BYTES - 1
    scene.channel.on_control(WSMsgType.PING, bytearray(b"a"))
    scene.transport.waiting = MAX_WAITING_PONG_BYTES
    scene.channel.on_control(WSMsgType.PING, bytearray(b"b"))
    assert scene.transport.written == [pong_frame(b"a")]
    scene.channel.on_control(WSMsgType.CLOSE, 1000)
    await task


async def test_messages_behind_a_goodbye_are_not_handed_on() -> None:
    scene = Scene()
    task = await running(scene)
    scene.channel.on_message(b"before")
    scene.channel.on_control(WSMsgType.CLOSE, 1000)
    scene.channel.on_message(b"behind")
    await task
    assert scene.messages == [b"before"]
