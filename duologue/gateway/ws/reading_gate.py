"""Whether a connection is read: only while nobody has a reason to let its peer wait.

The one owner of a transport's paused reading, since who pauses it for one reason must not be undone
by who resumes it for another. This module must not know why a peer is to wait.
"""

from __future__ import annotations

import asyncio
from typing import Literal, TypeAlias

Reason: TypeAlias = Literal["turn", "pressure"]
"""``turn``: what was read is parsed in turns, and this connection's is to come. ``pressure``: the
session has to deal with what was said."""


class ReadingGate:
    """Stands open at first.

    Concurrency:
        Belongs to the event loop.
    """

    __slots__ = ("_reasons", "_transport")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._reasons: frozenset[Reason] = frozenset()

    @property
    def is_shut(self) -> bool:
        """Whether the peer waits."""
        return bool(self._reasons)

    def hold(self, reason: Reason) -> None:
        """Read no further, at least until ``release`` for the same reason."""
        if not self._reasons and not self._transport.is_closing():
            self._transport.pause_reading()
        self._reasons |= {reason}

    def release(self, reason: Reason) -> None:
        """Read on, if there is no other reason not to."""
        if reason in self._reasons:
            self._reasons -= {reason}
            if not self._reasons and not self._transport.is_closing():
                self._transport.resume_reading()
