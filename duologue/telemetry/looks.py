"""Looks: what is published when somebody asks for figures, since nobody writes it meanwhile.

One that has much to look at does so in pieces, and everybody else has a turn between them. This
module must not know what is looked at.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

Look: TypeAlias = Callable[[], Iterator[None] | None]
"""Publishes something, at once or piece by piece."""


async def take_looks(looks: Iterable[Look]) -> None:
    """Take them all, in order.

    Concurrency:
        On the event loop, which turns between two pieces.
    """
    for look in looks:
        for _ in look() or ():
            await asyncio.sleep(0)
