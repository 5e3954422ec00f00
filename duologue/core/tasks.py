"""The guard around a child of a task group: its crash must not take its siblings along.

A ``TaskGroup`` cancels all children when one fails. Groups that hold one child per session or
connection therefore run each through ``guard``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable


async def guard(work: Awaitable[None], on_crash: Callable[[Exception], None]) -> None:
    """Await ``work``; hand its crash to ``on_crash`` instead of the task group.

    Cancellation passes through: it means disconnect or shutdown.
    """
    try:
        await work
    # One of the three agreed places for a broad except: the owner decides what a crash closes.
    except Exception as exc:
        on_crash(exc)
