"""Sessions that are over, for clients that come back too late.

Only who has the token of one is told what became of it. Of one that has reached its age limit, the
conversation is kept for a while, so that another session can go on with it. This module must not
know sessions.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from duologue.core.errors import ClientError, ProtocolError
from duologue.protocol.errors import ErrorCode
from duologue.sessions.history.inheritance import Inheritance
from duologue.sessions.owners import Owner
from duologue.sessions.resumption.lease import Lease, Tokens, refuse_unknown, wrong_token
from duologue.sessions.via import Via

REMEMBERED = 1024
"""A client that comes back after so many others have ended is a stranger."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A conversation that somebody may go on with.

    Args:
        until: When it is forgotten.
    """

    tokens: Tokens
    inheritance: Inheritance
    owner: Owner
    via: Via
    until: float


class PastSessions:
    """The latest sessions that ended: hashes of their tokens, and whether their time was up.

    Args:
        keep_bytes: What conversations may hold together; past that the oldest is forgotten.
    """

    def __init__(self, keep_bytes: int = 0) -> None:
        self.held_bytes = 0
        """What the conversations hold."""

        self._ended: OrderedDict[str, tuple[Tokens, bool]] = OrderedDict()
        self._kept: OrderedDict[str, Kept] = OrderedDict()
        self._keep_bytes = keep_bytes

    def __len__(self) -> int:
        return len(self._ended)

    def add(self, session_id: str, lease: Lease, *, expired: bool) -> None:
        """Remember a session.

        Args:
            expired: It ended because no connection came.
        """
        self._ended[session_id] = (lease.tokens, expired)
        if len(self._ended) > REMEMBERED:
            self._ended.popitem(last=False)

    def keep(self, kept: Kept, now: float) -> None:
        """Keep a conversation."""
        self._kept[kept.inheritance.session_id] = kept
        self.held_bytes += kept.inheritance.held_bytes
        self._forget_old(now)

    def claim(self, session_id: str, token: str, now: float) -> Kept | None:
        """Return the conversation that a token opens, if it is still there. It stays there."""
        self._forget_old(now)
        kept = self._kept.get(session_id)
        if kept is None or kept.tokens.match(token) is None:
            return None
        return kept

    def take(self, session_id: str) -> bool:
        """Forget a conversation that is gone on with; tells whether it was still there."""
        kept = self._kept.pop(session_id, None)
        if kept is None:
            return False
        self.held_bytes -= kept.inheritance.held_bytes
        return True

    def _forget_old(self, now: float) -> None:
        for session_id, kept in list(self._kept.items()):
            if now < kept.until and self.held_bytes <= self._keep_bytes:
                return
            self.take(session_id)

    def refusal(self, session_id: str, token: str) -> ClientError:
        """Return why a session that is not there cannot be resumed."""
        ended = self._ended.get(session_id)
        if ended is None:
            return refuse_unknown(token)
        tokens, expired = ended
        if tokens.match(token) is None:
            return wrong_token()
        if expired:
            return ProtocolError(
                "no connection came back to the session in time, and it has ended; open a new one",
                code=ErrorCode.RESUME_EXPIRED,
                param="session_id",
            )
        return ProtocolError(
            "the session was closed; open a new one",
            code=ErrorCode.RESUME_CONFLICT,
            param="session_id",
        )
