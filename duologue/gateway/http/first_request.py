"""Lets go of connections that do not come to their first request.

Who connects and says nothing, or says it a byte at a time, would hold a file and some memory for
ever: the limits of requests and calls only count those who have asked. This module must not know
what is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from duologue.core.clock import Clock
from duologue.core.wheel import TimerWheel
from duologue.telemetry import get_logger

LOOKS = 4
"""So often is looked within the limit: a connection may last a quarter of it longer."""


class OpenTransport(Protocol):
    """What is looked at of an ``asyncio.Transport``."""

    def abort(self) -> None:
        """Close at once."""
        ...


class FirstRequests:
    """Looks at all connections now and then; a member of the timer wheel.

    Args:
        waiting: Connections that are open and have not asked for anything yet.
        limit_s: How long a first request may take to come in, headers included.

    Concurrency:
        Belongs to the event loop.
    """

    def __init__(
        self,
        waiting: Callable[[], Iterable[OpenTransport]],
        clock: Clock,
        wheel: TimerWheel,
        limit_s: float,
    ) -> None:
        self._waiting = waiting
        self._clock = clock
        self._wheel = wheel
        self._limit_s = limit_s
        self._since: dict[OpenTransport, float] = {}
        self._log = get_logger("gateway")

    def start(self) -> None:
        """Begin to look."""
        self._wheel.set(self, self._clock.now() + self._limit_s / LOOKS)

    def stop(self) -> None:
        """Look no more."""
        self._wheel.set(self, None)
        self._since.clear()

    def on_timer(self) -> None:
        """Let go of those whose time is over."""
        now = self._clock.now()
        before, self._since = self._since, {}
        for transport in self._waiting():
            since = before.get(transport, now)
            if now < since + self._limit_s:
                self._since[transport] = since
            else:
                self._log.warning("first_request_late", limit_s=self._limit_s)
                transport.abort()
        self.start()
