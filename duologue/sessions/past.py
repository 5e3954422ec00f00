"""Sessions that are over, for clients that come back too late.

Only who has the token of one is told what became of it. This module must not know sessions.
"""

from __future__ import annotations

from collections import OrderedDict

from duologue.core.errors import ClientError, ProtocolError
from duologue.protocol.errors import ErrorCode
from duologue.sessions.lease import Lease, Tokens, refuse_unknown, wrong_token

REMEMBERED = 1024
"""A client that comes back after so many others have ended is a stranger."""


class PastSessions:
    """The latest sessions that ended: hashes of their tokens, and whether their time was up."""

    def __init__(self) -> None:
        self._ended: OrderedDict[str, tuple[Tokens, bool]] = OrderedDict()

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
