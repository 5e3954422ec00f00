from __future__ import annotations

import asyncio

from duologue.gateway.ws.open_connections import OpenConnections
from tests.patience import PATIENCE_S


async def test_whoever_waits_waits_for_the_last_one() -> None:
    connections = OpenConnections()
    await connections.wait_closed(0.01)
    with connections.counted():
        with connections.counted():
            waiting = asyncio.create_task(connections.wait_closed(PATIENCE_S))
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not waiting.done()
    await waiting


async def test_nobody_waits_for_ever() -> None:
    connections = OpenConnections()
    with connections.counted():
        await connections.wait_closed(0.01)
