"""All that a gateway sees of a session host, which may be in another process or machine.

Each way of arriving is a message, so that it can travel. This module must not know how it does,
nor what a session is.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeAlias

import msgspec

from duologue.engines.ports import WorkClass
from duologue.protocol.session_config import AnySession, SessionKind
from duologue.protocol.session_patch import SessionPatch
from duologue.sessions.owners import ANYBODY, Owner
from duologue.sessions.port import Joined
from duologue.sessions.via import SOCKET, Via
from duologue.sessions.watching.look import SessionLook


class _Arrival(msgspec.Struct, frozen=True, array_like=True, tag=True):
    pass


class Opening(_Arrival, frozen=True, kw_only=True):
    """A client wants a session; the fields are as in ``SessionManager.open``."""

    model: str | None = None
    kind: SessionKind = "realtime"
    patch: SessionPatch = SessionPatch()
    owner: Owner = ANYBODY
    edge_plays: bool = False
    via: Via = SOCKET
    resumable: bool = False


class LateOpening(_Arrival, frozen=True, kw_only=True):
    """A client will describe its session in its first message, or go on with one that there is.

    Args:
        opening: What is known of it already.
        timeout_s: How long the client has.
        resumes: The client has said that it comes back, and so needs no place of its own.
    """

    opening: Opening
    timeout_s: float
    resumes: bool = False


class Return(_Arrival, frozen=True, kw_only=True):
    """A client comes back to its session by the address that it connects to."""

    session_id: str
    resume_token: str
    owner: Owner = ANYBODY


class LookingOn(_Arrival, frozen=True, kw_only=True):
    """Somebody wants to look on at a WebRTC call of his, and say something."""

    call_id: str
    owner: Owner = ANYBODY


class InTurn(_Arrival, frozen=True, kw_only=True):
    """A client that would rather wait for a place than be refused.

    Args:
        timeout_s: It waits no longer.
    """

    opening: Opening | LateOpening
    timeout_s: float


Arrival: TypeAlias = Opening | LateOpening | Return | LookingOn | InTurn


class Slot(_Arrival, frozen=True, kw_only=True):
    """A plain request wants to be worked on: no client, but it comes, waits and leaves like one.

    Args:
        wait_s: It would wait so long; 0: not at all.
        work: Its class.
        owner: Whose it is.
    """

    wait_s: float
    work: WorkClass = WorkClass.INTERACTIVE
    owner: Owner = ANYBODY


Wanted: TypeAlias = Arrival | Slot
"""What a channel is opened for."""

Coming: TypeAlias = "Callable[[], Awaitable[Joined]]"
"""What takes time to be opened; raises ``DuologueError`` where it cannot be."""


class HostPort(Protocol):
    """One session host.

    Concurrency:
        Belongs to the event loop.
    """

    @property
    def accepting(self) -> bool:
        """Whether it is not going down."""
        ...

    def __len__(self) -> int:
        """How many sessions are open."""
        ...

    def check_loaded(self) -> None:
        """Refuse what needs a host with its models loaded.

        Raises:
            CapacityError: It is loading, or cannot be reached.
        """
        ...

    def check_room(self) -> None:
        """Refuse what ``open`` would refuse, as far as can be told without asking.

        Raises:
            CapacityError: There is no room, or others wait for it; or the host is going down or
                cannot be reached.
        """
        ...

    async def open(self, arrival: Arrival) -> Joined:
        """Receive a client, before its connection is accepted: a refusal can still say why.

        Raises:
            ClientError: It may not have what it asks for.
            CapacityError: There is no room, or others wait for it; or too many wait already.
        """
        ...

    def begin(self, opening: Opening) -> Joined:
        """Open a session for a connection that there is already.

        Raises:
            ClientError: As ``open``; or the port ends with the reason as soon as it is known.
            CapacityError: Likewise.
        """
        ...

    async def preview(self, model: str | None, patch: SessionPatch) -> AnySession:
        """Return what a session opened with ``patch`` would be like, without opening it.

        Raises:
            ClientError: The patch is not allowed.
        """
        ...

    async def look(self) -> list[SessionLook]:
        """Return what all open sessions look like."""
        ...

    async def hang_up(self, call_id: str, owner: Owner) -> None:
        """End a WebRTC call that another gateway of this host holds.

        Raises:
            UnknownSession: It has ended, is somebody else's or never was.
        """
        ...

    def call_began(self, call_id: str, owner: Owner) -> None:
        """This gateway holds a WebRTC call, at which others may want to look on."""
        ...

    def call_ended(self, call_id: str) -> None:
        """And holds it no more."""
        ...
