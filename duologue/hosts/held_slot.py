"""A slot for a plain request that is held over a link: a channel on which nothing is said.

So it is given back whatever happens: when the request is over, when nobody waits for it any more,
when the link or the gateway is lost. This module must not know links, nor requests.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

from duologue.hosts.class_slots import Ticket
from duologue.hosts.port import Slot
from duologue.hosts.request_slots import RequestSlots
from duologue.protocol.commands import Command
from duologue.protocol.events import ErrorBody
from duologue.sessions.port import Attachment, Batch, Delivery, Joined

_OVER = "closed"


class HeldSlot:
    """One slot, at the host. A ``Joined``."""

    def __init__(self, slots: RequestSlots, ticket: Ticket) -> None:
        self.id = ""
        self._slots: RequestSlots | None = slots
        self._ticket = ticket

    def attach(self, _attachment: Attachment) -> None:
        """Nobody listens to a slot."""

    def detach(self, _attachment: Attachment) -> None:
        """Give it back."""
        self.close(_OVER)

    def offer(self, _command: Command) -> None:
        """Nothing is said to a slot."""

    def reject(self, _error: ErrorBody) -> None:
        """Likewise."""

    def played(self, _item_id: str, _played_ms: int) -> None:
        """Likewise."""

    def pull(self, _max_bytes: int) -> Batch:
        """Return nothing: it says nothing."""
        return Batch([], False)

    def close(self, _reason: str) -> None:
        """Give it back."""
        slots, self._slots = self._slots, None
        if slots is not None:
            slots.give_back(self._ticket)


async def held_slot(slots: RequestSlots, wanted: Slot) -> Joined:
    """Take a slot for somebody at the other end of a link.

    Raises:
        RateLimited: The owner has as many as it may.
        CapacityError: There is none.
    """
    return HeldSlot(slots, await slots.take(wanted))


class _Holder:
    """Who holds a slot, at the gateway. An ``Attachment``."""

    def __init__(self, on_lost: Callable[[], None]) -> None:
        self._on_lost = on_lost

    def on_output(self) -> None:
        """Why it ended; ``on_end`` follows."""

    def on_end(self, _reason: str) -> None:
        """The host is gone, or the link to it."""
        self._on_lost()

    def on_let_go(self, _reason: str, _last_words: Sequence[Delivery]) -> None:
        """Only sessions say this."""

    def on_pressure(self, _on: bool) -> None:
        """Likewise."""


class HostSlots:
    """The slots of session hosts, as seen from a gateway. A ``SlotsPort``.

    Args:
        open: Takes a slot; raises ``RateLimited`` or ``CapacityError``.
    """

    def __init__(self, open: Callable[[Slot], Awaitable[Joined]]) -> None:
        self._open = open

    @asynccontextmanager
    async def taken(
        self, wanted: Slot, on_lost: Callable[[], None] | None = None
    ) -> AsyncIterator[None]:
        """Hold a slot; raises ``RateLimited`` or ``CapacityError``."""
        slot = await self._open(wanted)
        try:
            if on_lost is not None:
                slot.attach(_Holder(on_lost))
            yield
        finally:
            slot.close(_OVER)
