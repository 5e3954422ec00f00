"""How long a test waits for what must come, before it says that it hangs."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable

PATIENCE_S = 60.0
"""A guard and no measure: on a machine that is busy elsewhere everything takes several times as
long as alone, and that is no fault of what is tested."""


async def until(is_so: Callable[[], bool]) -> None:
    """Wait for what nobody tells of: buffers that fill, processes that end.

    Whoever does it has the processor meanwhile.
    """
    async with asyncio.timeout(PATIENCE_S):
        for _ in itertools.count():
            if is_so():
                return
            await asyncio.sleep(0.01)
