"""How a lost call comes back in: what is opened, and what is said first on it.

Each transport has a door of its own. This module must not know when one is used.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from duologue.clients.transports.base import Received, Transport
from duologue.protocol.duplex.commands import ResumeSession


@dataclass(frozen=True, slots=True)
class Place:
    """Where a call stands.

    Args:
        received: The number of the latest event.
    """

    session_id: str
    token: str
    received: int


class Door(Protocol):
    """Opens another connection to a session."""

    acknowledges: bool
    """The server is told what has arrived, and sends the rest again; and the client, too."""

    async def open(self, place: Place) -> tuple[Transport, Received]:
        """Return a connection, and the first event on it: the session's, or a refusal.

        Raises:
            DuologueError: There is no connection; ``clients.errors`` lists why that may be.
        """
        ...


class FirstMessage:
    """The duplex dialect: ``session.resume`` is the first message.

    Args:
        open_transport: Opens a connection without a session.
    """

    acknowledges = True

    def __init__(self, open_transport: Callable[[], Awaitable[Transport]]) -> None:
        self._open_transport = open_transport

    async def open(self, place: Place) -> tuple[Transport, Received]:
        """Connect and say who comes."""
        transport = await self._open_transport()
        return await _greeted(
            transport,
            ResumeSession(
                session_id=place.session_id,
                resume_token=place.token,
                last_received_server_event_seq=place.received,
            ),
        )


class ByAddress:
    """The plain dialect: the address, or the offer, says who comes.

    Args:
        open_transport: Opens a connection to a session.
    """

    acknowledges = False

    def __init__(self, open_transport: Callable[[str, str], Awaitable[Transport]]) -> None:
        self._open_transport = open_transport

    async def open(self, place: Place) -> tuple[Transport, Received]:
        """Connect to the session."""
        return await _greeted(await self._open_transport(place.session_id, place.token), None)


async def _greeted(transport: Transport, first: ResumeSession | None) -> tuple[Transport, Received]:
    try:
        if first is not None:
            await transport.send(first)
        return transport, await transport.receive()
    except BaseException:
        transport.abort()
        raise
