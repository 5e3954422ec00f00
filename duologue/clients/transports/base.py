"""What a client needs of a way to its server.

A transport carries one attachment to a session; a client that comes back to its session opens
another one. This module must not know what commands and events mean.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from duologue.clients.reconnect.events import LineEvent
from duologue.clients.track import FromTrack
from duologue.protocol.commands import Command
from duologue.protocol.events import Event
from duologue.protocol.json_codec import UnknownEvent


@dataclass(frozen=True, slots=True)
class Received:
    """An event, with its number in the session; ``None`` where the server gives none.

    From a transport on which the server plays, also the speech on its track; from one that outlives
    its connections, also what became of them.
    """

    event: Event | UnknownEvent | FromTrack | LineEvent
    seq: int | None


class Transport(Protocol):
    """One connection.

    Concurrency:
        One task sends and one task receives; ``close`` may come from a third.
    """

    server_plays: bool
    """Speech comes as it is to be heard, on a track; the server knows what was heard."""

    async def send(self, command: Command) -> None:
        """Hand a command over; waits while the network takes no more.

        Raises:
            ConnectionLost: It broke.
            CallEnded: One side hung up.
        """
        ...

    async def receive(self) -> Received:
        """Return the next event.

        Raises:
            ProtocolError: A message cannot be read; the next one may be.
            ConnectionLost: It broke.
            CallEnded: One side hung up.
        """
        ...

    async def close(self) -> None:
        """Hang up. Never raises, and returns within a bound."""
        ...

    def abort(self) -> None:
        """Let go of the connection at once, without a goodbye. Never raises."""
        ...


OpenTransport = Callable[[], Awaitable[Transport]]
"""Makes a new connection; raises what ``clients.errors`` lists."""
