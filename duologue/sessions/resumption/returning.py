"""A client that comes back to its session by the address it connects to.

Stock clients know no message for that. The claim is checked before the upgrade, where a refusal can
say why, and made good once the connection is there. This module must not know how messages are
written.
"""

from __future__ import annotations

from collections.abc import Callable

from duologue.core.errors import CapacityError, ClientError
from duologue.protocol.commands import Command
from duologue.protocol.errors import ErrorCode, refused
from duologue.protocol.events import ErrorBody
from duologue.sessions.port import Attachment, Batch
from duologue.sessions.resumption.ticket import Ticket


def check_comes_back(ticket: Ticket) -> None:
    """Refuse to go on with a duplex session in a dialect that lacks its events.

    Raises:
        ProtocolError: It is one.
    """
    if ticket.is_duplex:
        raise refused(
            "this is a duplex session: connect with autostart=0 and send session.resume",
            "session_id",
            ErrorCode.RESUME_UNSUPPORTED,
        )


class ReturningSession:
    """Stands for a session until a connection has taken it over, then is replaced by it."""

    def __init__(self, ticket: Ticket) -> None:
        self.id = ticket.session_id
        self.offer: Callable[[Command], None] = _unheard
        self.reject: Callable[[ErrorBody], None] = _unheard
        self.pull: Callable[[int], Batch] = _nothing
        self.played: Callable[[str, int], None] = _nothing_plays
        self.detach: Callable[[Attachment], None] = _nobody_leaves
        self.close: Callable[[str], None] = _stays
        self._ticket = ticket

    def attach(self, attachment: Attachment) -> None:
        """Take the session over."""
        try:
            session = self._ticket.begin()
            self.id, self.played, self.detach = session.id, session.played, session.detach
            self.close = session.close
            self.offer, self.reject, self.pull = session.offer, session.reject, session.pull
            self._ticket.use(attachment)
        except (ClientError, CapacityError) as exc:
            self.offer, self.reject, self.pull = _unheard, _unheard, _nothing
            self.detach, self.close = _nobody_leaves, _stays
            attachment.on_end(exc.code)


def _stays(_reason: str) -> None:
    """Nobody comes after all: the session stays as it is."""


def _unheard(_said: object) -> None:
    """Somebody else has the session."""


def _nothing_plays(_item_id: str, _played_ms: int) -> None:
    """There is no session yet."""


def _nobody_leaves(_attachment: Attachment) -> None:
    """Likewise."""


def _nothing(_max_bytes: int) -> Batch:
    return Batch([], False)
