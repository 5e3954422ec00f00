"""Who holds sessions open, and how many each may.

This module must not know how an owner was recognised, nor what a session is.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from duologue.core.errors import AuthError, RateLimited
from duologue.protocol.errors import ErrorCode
from duologue.telemetry import Metrics

RETRY_AFTER_S = 5.0


@dataclass(frozen=True, slots=True)
class Owner:
    """Somebody who opens sessions, and asks for other things.

    Args:
        name: From a closed set, of the settings: it is a label of figures.
        max_sessions: None for no limit but the server's.
        max_requests: Plain requests that may be worked on at a time; None likewise.
    """

    name: str
    max_sessions: int | None = None
    max_requests: int | None = None


ANYBODY = Owner("anybody")
"""All who come to a server that asks for no key."""


class Owners:
    """How many sessions each owner has open."""

    def __init__(self, metrics: Metrics) -> None:
        self._open: Counter[str] = Counter()
        self._gauges = metrics.key_sessions
        self._refused = metrics.key_refused

    def check(self, owner: Owner) -> None:
        """Refuse what ``add`` would go beyond.

        Raises:
            RateLimited: The owner has as many sessions open as it may.
        """
        limit = owner.max_sessions
        if limit is not None and self._open[owner.name] >= limit:
            self._refused[owner.name].inc()
            raise RateLimited(
                f"{self._open[owner.name]} sessions of this API key are open, its limit is {limit}",
                code=ErrorCode.TOO_MANY_SESSIONS,
                retry_after_s=RETRY_AFTER_S,
            )

    def add(self, owner: Owner) -> None:
        """Count a session that begins."""
        self._open[owner.name] += 1
        self._gauges[owner.name].set(self._open[owner.name])

    def remove(self, owner: Owner) -> None:
        """Count a session that ended."""
        self._open[owner.name] -= 1
        self._gauges[owner.name].set(self._open[owner.name])


def check_same(opened_by: Owner, owner: Owner) -> None:
    """Refuse a session to anybody but who has opened it.

    Raises:
        AuthError: He has not.
    """
    if opened_by.name != owner.name:
        raise AuthError(
            "the session was opened with another API key",
            code=ErrorCode.KEY_NOT_ALLOWED,
            param="session_id",
        )
