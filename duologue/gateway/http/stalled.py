"""Lets go of clients that take nothing of what is sent to them.

What they do not take lies in our memory, and a request that answers them holds its place. This
module must not know what is sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from duologue.core.clock import Clock
from duologue.core.wheel import TimerWheel
from duologue.telemetry import get_logger

LOOKS = 12
"""So often in a row must there be no less left of what was written. There may be more: we answer
the pings of a client that takes nothing, and keep its event streams alive."""


class SendingTransport(Protocol):
    """What is looked at of an ``asyncio.Transport``."""

    def get_write_buffer_size(self) -> int:
        """Bytes that were written and not taken."""
        ...

    def abort(self) -> None:
        """Close at once, and drop what is left."""
        ...


class StalledClients:
    """Looks at all connections now and then; a member of the timer wheel.

    Args:
        connections: Those that are open.
        limit_s: How long a client may take nothing.

    Concurrency:
        Belongs to the event loop.
    """

    def __init__(
        self,
        connections: Callable[[], Iterable[SendingTransport]],
        clock: Clock,
        wheel: TimerWheel,
        limit_s: float,
    ) -> None:
        self._connections = connections
        self._clock = clock
        self._wheel = wheel
        self._period_s = limit_s / LOOKS
        self._waiting: dict[SendingTransport, tuple[int, int]] = {}
        """What is left, and how often it was no less than before."""
        self._log = get_logger("gateway")

    def start(self) -> None:
        """Begin to look."""
        self._wheel.set(self, self._clock.now() + self._period_s)

    def stop(self) -> None:
        """Look no more."""
        self._wheel.set(self, None)
        self._waiting.clear()

    def on_timer(self) -> None:
        """Let go of those whose time is over."""
        before, self._waiting = self._waiting, {}
        for transport in self._connections():
            left = transport.get_write_buffer_size()
            if not left:
                continue
            last, looks = before.get(transport, (0, 0))
            looks = looks + 1 if last and left >= last else 0
            if looks < LOOKS:
                self._waiting[transport] = (left, looks)
            else:
                self._log.warning("http_client_stalled", left_bytes=left)
                transport.abort()
        self.start()
