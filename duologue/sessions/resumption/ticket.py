"""A ticket: a claim on a session, until a connection is there that takes it over.

Between the two lies an upgrade that may fail: then nothing has happened. This module must not know
how a claim is checked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from duologue.core.errors import ClientError, ProtocolError
from duologue.protocol.errors import ErrorCode
from duologue.sessions.port import Attachment
from duologue.sessions.resumption.lease import Claim, LeaseState
from duologue.sessions.resumption.past import Kept
from duologue.sessions.resumption.resumable_session import ResumableSession
from duologue.sessions.session import Session

RESUMED, TAKEN_OVER, ROLLED_OVER = "resumed", "taken_over", "rolled_over"


class Ticket(Protocol):
    """A claim, on a session or on its conversation."""

    @property
    def session_id(self) -> str:
        """What it was claimed as."""
        ...

    @property
    def is_duplex(self) -> bool:
        """It speaks the duplex dialect."""
        ...

    def begin(self) -> Session:
        """Return the session that ``use`` will take over; it may speak as soon as that is called.

        Raises:
            CapacityError: It would have to be opened, and there is no room.
            ClientError: It cannot be opened.
        """
        ...

    def use(self, attachment: Attachment) -> Session:
        """Let a connection take the session over, after ``begin``.

        Raises:
            ProtocolError: Another one was quicker, or the session is over. Nothing changed.
        """
        ...


@dataclass(frozen=True, slots=True)
class SessionTicket:
    """A claim on a session that there is.

    Args:
        received: The number of the latest event that the client has; ``None``: it does not say.
        count: Is told what became of it.
    """

    session: ResumableSession
    claim: Claim
    received: int | None
    count: Callable[[str], None]

    @property
    def session_id(self) -> str:
        """Its own."""
        return self.session.id

    @property
    def is_duplex(self) -> bool:
        """It speaks the duplex dialect."""
        return self.session.machine.extensions is not None

    def begin(self) -> Session:
        """Return the session."""
        return self.session

    def use(self, attachment: Attachment) -> Session:
        """Let a connection take the session over."""
        waited = self.session.lease.state is LeaseState.DETACHED
        try:
            self.session.resume(attachment, self.claim, self.received)
        except ClientError as exc:
            self.count(exc.code)
            raise
        self.count(RESUMED if waited else TAKEN_OVER)
        return self.session


@dataclass(slots=True)
class InheritanceTicket:
    """A claim on the conversation of a session that has reached its age limit.

    Args:
        take: Takes the conversation; tells whether nobody was quicker.
        open: Opens the session that goes on with it.
        count: Is told what became of it.
    """

    kept: Kept
    take: Callable[[str], bool]
    open: Callable[[Kept], Session]
    count: Callable[[str], None]
    _heir: Session | None = field(default=None, init=False)

    @property
    def session_id(self) -> str:
        """Of the session that is over."""
        return self.kept.inheritance.session_id

    @property
    def is_duplex(self) -> bool:
        """It speaks the duplex dialect."""
        return self.kept.inheritance.config.duplex is not None

    def begin(self) -> Session:
        """Open the session."""
        if self._heir is None:
            # First, since only a session that is open takes what is then nobody else's.
            heir = self.open(self.kept)
            if not self.take(self.session_id):
                heir.close(ErrorCode.RESUME_CONFLICT)
                raise taken()
            self._heir = heir
        return self._heir

    def use(self, attachment: Attachment) -> Session:
        """Let a connection have the session."""
        session = self.begin()
        session.attach(attachment)
        self.count(ROLLED_OVER)
        return session


def taken() -> ProtocolError:
    """Return the refusal of whoever comes second."""
    return ProtocolError(
        "another connection goes on with this conversation already",
        code=ErrorCode.RESUME_CONFLICT,
        param="session_id",
    )
