"""A ticket: a claim on a session, until a connection is there that takes it over.

Between the two lies an upgrade that may fail: then nothing has happened. This module must not know
how a claim is checked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from duologue.core.errors import ClientError
from duologue.sessions.lease import Claim, LeaseState
from duologue.sessions.port import Attachment
from duologue.sessions.session import Session

RESUMED, TAKEN_OVER = "resumed", "taken_over"


@dataclass(frozen=True, slots=True)
class Ticket:
    """One claim.

    Args:
        received: The number of the latest event that the client has; ``None``: it does not say.
        count: Is told what became of it.
    """

    session: Session
    claim: Claim
    received: int | None
    count: Callable[[str], None]

    def use(self, attachment: Attachment) -> Session:
        """Let a connection take the session over.

        Raises:
            ProtocolError: Another one was quicker, or the session is over. Nothing changed.
        """
        lease = self.session.lease
        waited = lease is not None and lease.state is LeaseState.DETACHED
        try:
            self.session.resume(attachment, self.claim, self.received)
        except ClientError as exc:
            self.count(exc.code)
            raise
        self.count(RESUMED if waited else TAKEN_OVER)
        return self.session
