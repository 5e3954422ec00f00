"""Fills what remembers the latest of something by number, so that a soak sees growth alone.

A server keeps the beginnings of the events of its latest answers, for each dialect, and of its
latest calls what opened them. That takes memory until as many have come as are kept, which in
random calls takes most of an hour; so it is done before anything is read.
"""

from __future__ import annotations

import asyncio

from duologue.protocol.dialect import HEADS_KEPT
from duologue.sessions.resumption.past import REMEMBERED
from tests.patience import PATIENCE_S
from tests.unit.gateway.raw_websocket import connected

BRIEF = "brief"
"""The model that is asked; it says a word."""

AT_ONCE = 8
ANSWERS = -(-HEADS_KEPT // AT_ONCE)
CALLS = -(-max(HEADS_KEPT, REMEMBERED) // AT_ONCE)


async def fill(port: int) -> None:
    """Come as often as is remembered."""
    for some in (_many_answers, _many_calls):
        async with asyncio.TaskGroup() as group:
            for _ in range(AT_ONCE):
                group.create_task(some(port))


async def _many_answers(port: int) -> None:
    """One call of the Realtime API with many answers."""
    async with connected(port) as line:
        line.patience_s = PATIENCE_S
        await line.upgrade(f"/v1/realtime?model={BRIEF}")
        audio = {"input": {"turn_detection": None}}
        line.send_event({"type": "session.update", "session": {"type": "realtime", "audio": audio}})
        for _ in range(ANSWERS):
            line.send_event({"type": "response.create"})
            await line.until("response.done")
        line.close()
        await line.goodbye()


async def _many_calls(port: int) -> None:
    """Calls of the duplex dialect, each with one answer."""
    for _ in range(CALLS):
        async with connected(port) as line:
            line.patience_s = PATIENCE_S
            await line.upgrade(f"/v1/duplex?model={BRIEF}&autostart=0")
            line.send_event({"type": "session.update", "session": {"turn_detection": None}})
            line.send_event({"type": "response.create"})
            await line.until("response.done")
            line.send_event({"type": "session.close"})
            await line.until("session.closed")
