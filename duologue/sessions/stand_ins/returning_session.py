"""A client that comes back to its session by the address it connects to.

Stock clients know no message for that. The claim is checked before the upgrade, where a refusal can
say why, and made good once the connection is there. This module must not know how messages are
written.
"""

from __future__ import annotations

from duologue.core.errors import CapacityError, ClientError
from duologue.protocol.commands import Command
from duologue.protocol.errors import ErrorCode, refused
from duologue.sessions.port import Attachment
from duologue.sessions.resumption.ticket import Ticket
from duologue.sessions.stand_ins.stand_in import StandIn


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


class ReturningSession(StandIn):
    """Becomes the session that its connection takes over. Until then nobody says anything."""

    def __init__(self, ticket: Ticket) -> None:
        super().__init__()
        self._ticket = ticket

    @property
    def id(self) -> str:
        """Of the session; of the one that it goes on with, until that is taken over."""
        return super().id or self._ticket.session_id

    def attach(self, attachment: Attachment) -> None:
        """Take the session over."""
        try:
            # First, since the session speaks as soon as it is taken over.
            self._become(self._ticket.begin())
            self._ticket.use(attachment)
        except (ClientError, CapacityError) as exc:
            self._step_back(attachment)
            self._end(exc.code)

    def _offer_early(self, command: Command) -> None:
        """Somebody else has the session."""

    def _give_up(self) -> None:
        """The session stays as it is."""
