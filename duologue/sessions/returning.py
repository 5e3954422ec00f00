"""A client that comes back to its session by the address it connects to.

Stock clients know no message for that. The claim is checked before the upgrade, where a refusal can
say why, and made good once the connection is there. This module must not know how messages are
written.
"""

from __future__ import annotations

from collections.abc import Callable

from duologue.core.errors import ClientError
from duologue.protocol.commands import Command
from duologue.protocol.errors import ErrorCode, refused
from duologue.protocol.events import ErrorBody
from duologue.sessions.port import Attachment, Batch
from duologue.sessions.ticket import Ticket


def check_comes_back(ticket: Ticket) -> None:
    """Refuse to go on with a duplex session in a dialect that lacks its events.

    Raises:
        ProtocolError: It is one.
    """
    if ticket.session.machine.extensions is not None:
        raise refused(
            "this is a duplex session: connect with autostart=0 and send session.resume",
            "session_id",
            ErrorCode.RESUME_UNSUPPORTED,
        )


class ReturningSession:
    """Stands for a session until a connection has taken it over, then is replaced by it."""

    def __init__(self, ticket: Ticket) -> None:
        session = ticket.session
        self.id = session.id
        self.offer: Callable[[Command], None] = _unheard
        self.reject: Callable[[ErrorBody], None] = _unheard
        self.pull: Callable[[int], Batch] = _nothing
        self.played: Callable[[str, int], None] = session.played
        self.detach: Callable[[Attachment], None] = session.detach
        self._ticket = ticket

    def attach(self, attachment: Attachment) -> None:
        """Take the session over."""
        session = self._ticket.session
        self.offer, self.reject, self.pull = session.offer, session.reject, session.pull
        try:
            self._ticket.use(attachment)
        except ClientError as exc:
            self.offer, self.reject, self.pull = _unheard, _unheard, _nothing
            attachment.on_end(exc.code)

    def close(self, reason: str) -> None:
        """Nobody comes after all: the session stays as it is."""


def _unheard(_said: object) -> None:
    """Somebody else has the session."""


def _nothing(_max_bytes: int) -> Batch:
    return Batch([], False)
