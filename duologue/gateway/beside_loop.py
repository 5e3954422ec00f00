"""Large messages are read beside the loop, which would stand still meanwhile.

One of 20 MB takes tens of milliseconds. This module must not know what is in a message.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from duologue.protocol.json_values import COUNTED_FROM_BYTES

T = TypeVar("T")

LARGE_BYTES = COUNTED_FROM_BYTES
"""A smaller message is read where it arrives: a thread would cost more."""


async def read_beside_loop(read: Callable[[bytes], T], message: bytes) -> T:
    """Return what ``read`` makes of a message; in a thread where that is a large one."""
    if len(message) <= LARGE_BYTES:
        return read(message)
    return await asyncio.to_thread(read, message)
