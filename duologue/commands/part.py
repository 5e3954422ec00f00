"""Runs one part of a server in several processes: a session host, or a gateway.

Its order comes on the standard input, which stays open for as long as somebody wants the part; what
it has to report goes to the standard output. This module must not know the other parts.
"""

from __future__ import annotations

import asyncio
import gc
import select
import signal
import sys
from collections.abc import Callable
from contextlib import suppress

from duologue.composition.edge import running_edge
from duologue.composition.host import running_host
from duologue.composition.orders import (
    BEAT_S,
    EdgeOrder,
    HostDrained,
    HostOrder,
    HostReady,
    LoopTurns,
    PartReport,
    TakesConnections,
    read_order,
    write_line,
)
from duologue.core.errors import ConfigError
from duologue.settings import Settings

GC_THRESHOLDS = (5_000, 5, 800)
"""Calls make few circles, so the collector looks at what is new after 5,000 objects, and at what
was left of that after 25,000, which takes some 8 ms: a call that begins leaves 220. At everything,
which takes 100 ms while 600 calls go on, it looks hardly ever."""


def calm_collector() -> None:
    """Let what is there now stay: the collector need not walk it again while calls go on.

    With many sessions it would hold the loop for longer than a frame.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)


async def run_part(settings: Settings) -> int:
    """Be a part until SIGTERM, or until nobody wants it any more.

    Raises:
        ConfigError: The settings cannot be used, or there is no order.
        EngineError: A model cannot be started.
    """
    loop = asyncio.get_running_loop()
    stop, stop_now = asyncio.Event(), asyncio.Event()

    def on_signal() -> None:
        (stop_now if stop.is_set() else stop).set()

    loop.add_signal_handler(signal.SIGTERM, on_signal)
    # At a terminal this comes to all processes at once; whoever started us says when.
    loop.add_signal_handler(signal.SIGINT, lambda: None)
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    line = await reader.readline()
    if not line:
        raise ConfigError("a part of a server is started by 'duologue serve --edges N'")
    # Entered and left by hand: what goes wrong between is not the group's, and would come out of it
    # wrapped.
    group = asyncio.TaskGroup()
    await group.__aenter__()
    up = asyncio.Event()
    beside = (
        group.create_task(_until_unwanted(reader, stop, stop_now), name="wanted"),
        group.create_task(_beat(up), name="beat"),
    )
    try:
        match read_order(line):
            case HostOrder() as order:
                await _run_host(settings, order, up, stop, stop_now)
            case EdgeOrder() as order:
                await _run_edge(settings, order, up, stop)
    finally:
        for task in beside:
            task.cancel()
        await group.__aexit__(None, None, None)
    return 0


async def _run_host(
    settings: Settings,
    order: HostOrder,
    up: asyncio.Event,
    stop: asyncio.Event,
    stop_now: asyncio.Event,
) -> None:
    host = running_host(
        settings, order, stop_now=stop_now, on_drained=lambda: _report(HostDrained())
    )
    async with host as app:
        calm_collector()
        _report(HostReady(app.side.engine.lifecycle.start_report))
        up.set()
        await stop.wait()


async def _run_edge(
    settings: Settings, order: EdgeOrder, up: asyncio.Event, stop: asyncio.Event
) -> None:
    async with running_edge(settings, order) as edge:
        calm_collector()
        _report(TakesConnections(edge.url))
        up.set()
        await stop.wait()


async def _beat(up: asyncio.Event) -> None:
    """Say again and again that the loop turns, as long as somebody takes it."""
    await up.wait()
    while True:
        with suppress(OSError):  # whoever started us is gone, which another task notices
            if select.select((), (sys.stdout,), (), 0)[1]:
                _report(LoopTurns())
        await asyncio.sleep(BEAT_S)


async def _until_unwanted(
    reader: asyncio.StreamReader, stop: asyncio.Event, stop_now: asyncio.Event
) -> None:
    """Whoever started us has died, so nobody would stop us: no order follows the first."""
    await reader.read()
    stop.set()
    stop_now.set()


def _report(report: PartReport, write: Callable[[bytes], object] | None = None) -> None:
    (write or sys.stdout.buffer.write)(write_line(report))
    sys.stdout.buffer.flush()
