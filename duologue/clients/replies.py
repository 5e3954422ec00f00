"""Which event answers which command.

The dialect has no replies: an ``error`` names the command that it answers, and anything else is
recognised by what it is. This module must not know transports.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, TypeVar

from duologue.clients.errors import CallError, CommandRefused
from duologue.clients.machine import EventOrUnknown
from duologue.core.errors import LimitExceeded
from duologue.protocol.events import ErrorEvent

MAX_WAITING = 256

T = TypeVar("T")
Pick = Callable[[EventOrUnknown], T | None]
"""Returns what the caller wants of an event, ``None`` where it is not the one."""


@dataclass(eq=False, slots=True)
class _Expected:
    command_ids: Collection[str]
    pick: Pick[Any]
    future: asyncio.Future[Any]


class Replies:
    """What is waited for, oldest first; each event answers one at most."""

    def __init__(self, max_waiting: int = MAX_WAITING) -> None:
        self._max_waiting = max_waiting
        self._expected: list[_Expected] = []

    def __len__(self) -> int:
        return len(self._expected)

    async def wait(self, command_ids: Collection[str], pick: Pick[T]) -> T:
        """Wait for the event that ``pick`` accepts.

        Raises:
            CommandRefused: An error named one of the commands.
            CallError: The call ended first.
            LimitExceeded: Too many replies are waited for.
        """
        if len(self._expected) >= self._max_waiting:
            raise LimitExceeded(
                f"{len(self._expected)} commands wait for a reply, which is the limit"
            )
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        expected = _Expected(command_ids, pick, future)
        self._expected.append(expected)
        try:
            return await future
        finally:
            self._expected.remove(expected)

    def offer(self, event: EventOrUnknown) -> None:
        """Show an event to those who wait."""
        for expected in self._expected:
            if expected.future.done():
                continue
            if isinstance(event, ErrorEvent):
                if event.error.event_id in expected.command_ids:
                    expected.future.set_exception(CommandRefused(event.error))
                    return
                continue
            found = expected.pick(event)
            if found is not None:
                expected.future.set_result(found)
                return

    def end(self, error: CallError) -> None:
        """Nothing will be answered any more."""
        for expected in self._expected:
            if not expected.future.done():
                expected.future.set_exception(error)
