"""Barriers around work that must not take its neighbours along when it crashes.

A ``TaskGroup`` cancels all children when one fails, and a callback that raises is lost in the
loop's handler. Groups with one child per connection run each through ``guard``; callbacks that
enter a session go through ``CrashBarrier``. Whoever owns the work decides what a crash closes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")

OnCrash = Callable[[Exception], None]


class CrashBarrier:
    """A context that hands an exception of its body to ``on_crash`` and goes on.

    Cancellation and exit requests pass through. Entering costs no allocation: one barrier serves
    a session for life.
    """

    __slots__ = ("_on_crash",)

    def __init__(self, on_crash: OnCrash) -> None:
        self._on_crash = on_crash

    def run(self, work: Callable[[T], R], item: T) -> R | None:
        """Call ``work`` and return what it does, or ``None`` where it crashed.

        A third as dear as a ``with``, for what is entered for every frame.
        """
        try:
            return work(item)
        # One of the three agreed places for a broad except, with ``__exit__``.
        except Exception as exc:  # noqa: BLE001
            self._on_crash(exc)
            return None

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        if exc is None:  # nearly always, and several times for every frame
            return False
        if isinstance(exc, Exception):
            self._on_crash(exc)
            return True
        return False


async def guard(work: Awaitable[None], on_crash: OnCrash) -> None:
    """Await ``work``; hand its crash to ``on_crash`` instead of the task group."""
    with CrashBarrier(on_crash):
        await work
