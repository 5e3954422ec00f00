"""A server of bare channels: the test is what stands behind them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web

from duologue.core.clock import SystemClock
from duologue.core.wheel import TimerWheel
from duologue.gateway.errors import errors_in_json
from duologue.gateway.ws.accept import Accept
from duologue.gateway.ws.channel import Channel, ChannelTiming
from duologue.gateway.ws.handshake import check_upgrade, offered_protocols
from tests.fakes.clock import FakeClock
from tests.patience import PATIENCE_S

MAX_MESSAGE_BYTES = 100_000


@dataclass(eq=False)
class Line:
    """The server's end of one WebSocket."""

    channel: Channel
    task: asyncio.Task[None]
    messages: list[bytes] = field(default_factory=list)
    on_message: Callable[[bytes], None] | None = None
    has_run: asyncio.Event = field(default_factory=asyncio.Event)
    is_over: asyncio.Event = field(default_factory=asyncio.Event)
    _fresh: asyncio.Event = field(default_factory=asyncio.Event)

    def take(self, message: bytes) -> None:
        self.messages.append(message)
        self._fresh.set()
        if self.on_message is not None:
            self.on_message(message)

    async def received(self, count: int) -> list[bytes]:
        """Wait for so many messages."""
        async with asyncio.timeout(PATIENCE_S):
            while len(self.messages) < count:
                self._fresh.clear()
                await self._fresh.wait()
        return self.messages

    async def ran(self) -> None:
        """Wait until the messages have ended."""
        async with asyncio.timeout(PATIENCE_S):
            await self.has_run.wait()

    async def over(self) -> None:
        """Wait until the connection was released."""
        async with asyncio.timeout(PATIENCE_S):
            await self.is_over.wait()


class ChannelServer:
    """Accepts WebSockets on ``port``."""

    def __init__(self, accept: Accept, timing: ChannelTiming) -> None:
        self.port = 0
        self.timing = timing
        self.lines: list[Line] = []
        self._accept = accept
        self._opened = asyncio.Event()

    async def line(self) -> Line:
        """The connection that was accepted last."""
        async with asyncio.timeout(PATIENCE_S):
            await self._opened.wait()
        return self.lines[-1]

    def forget(self) -> None:
        """Let ``line`` wait for the next connection."""
        self.lines.clear()
        self._opened.clear()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        check_upgrade(request.headers)
        offered = offered_protocols(request.headers)
        protocol = "realtime" if "realtime" in offered else None
        response, channel = await self._accept(request, protocol, MAX_MESSAGE_BYTES, self.timing)
        task = asyncio.current_task()
        assert task is not None
        line = Line(channel, task)
        self.lines.append(line)
        self._opened.set()
        try:
            await channel.run(line.take)
            line.has_run.set()
            await channel.finish()
        finally:
            channel.release()
            line.is_over.set()
        return response


@asynccontextmanager
async def serving(
    accept: Accept,
    *,
    heartbeat_s: float = 60.0,
    close_timeout_s: float = 5.0,
    clock: FakeClock | None = None,
) -> AsyncIterator[ChannelServer]:
    """Serve; with a clock, time stands still until it is moved."""
    wheel = TimerWheel(asyncio.get_running_loop().call_at if clock is None else clock.call_at)
    timing = ChannelTiming(clock or SystemClock(), wheel, heartbeat_s, close_timeout_s)
    server = ChannelServer(accept, timing)
    app = web.Application(middlewares=[errors_in_json])
    app.router.add_get("/", server.handle)
    runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=0.1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        server.port = runner.addresses[0][1]
        yield server
    finally:
        await runner.cleanup()
