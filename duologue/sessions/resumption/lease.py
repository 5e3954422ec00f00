"""The lease: which connection may drive a session, and for how long nobody may.

A session outlives its connections. Each of them holds the lease under a generation of its own; one
that is lost starts a grace period, and whoever shows the token takes the lease over. This module
must not know connections, events or how a token travels.
"""

from __future__ import annotations

import hashlib
import hmac
import math
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from duologue.core.errors import AuthError, ProtocolError
from duologue.core.running_timeout import RunningTimeout
from duologue.protocol.errors import ErrorCode

TokenMaker = Callable[[], str]

MAX_TOKEN_CHARS = 256
"""Of a token that is shown to us; ours are shorter."""

_NOBODYS = bytes(hashlib.sha256().digest_size)
"""What a token is compared with where there is none, so that it takes as long."""


def new_token() -> str:
    """Return a secret that nobody can guess."""
    return secrets.token_urlsafe(32)


class LeaseState(Enum):
    """Who drives the session."""

    ATTACHED = "attached"
    DETACHED = "detached"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class Claim:
    """Somebody has shown the token. Nothing has changed yet, and nothing need ever.

    Args:
        generation: What the lease's was; it must be still when the claim is made good.
        digest: Of the token that was shown.
    """

    generation: int
    digest: bytes


class Tokens:
    """Hashes of what opens a lease: the latest token, and the one before until it is confirmed.

    A token is replaced whenever it was used. The answer with its successor may be lost with the
    connection that it was written to, so the used one stays good until the client has shown that
    it has the answer.
    """

    __slots__ = ("_current", "_used")

    def __init__(self, token: str) -> None:
        self._current = _digest(token)
        self._used = _NOBODYS

    @classmethod
    def of_hashes(cls, current: bytes, used: bytes) -> Tokens:
        """Return those of a session that was kept elsewhere."""
        tokens = cls("")
        tokens._current, tokens._used = current, used
        return tokens

    @property
    def hashes(self) -> tuple[bytes, bytes]:
        """The hash of the latest token, and that of the one before until it is confirmed."""
        return self._current, self._used

    def match(self, token: str) -> bytes | None:
        """Return the hash of a token that is good; takes the same time for any other."""
        shown = _digest(token[:MAX_TOKEN_CHARS])
        return shown if self.opens(shown) else None

    def opens(self, digest: bytes) -> bool:
        """Tell whether this is the hash of a token that is good."""
        current = hmac.compare_digest(digest, self._current)
        used = hmac.compare_digest(digest, self._used)
        return current | used

    def rotate(self, used: bytes, token: str) -> None:
        """Put another token in the place of the one that was used, which stays good for now."""
        self._used = used
        self._current = _digest(token)

    def confirm(self) -> None:
        """The client has the latest token: the one before is void."""
        self._used = _NOBODYS


class Lease:
    """The right to drive one session. It begins attached, as generation 1.

    Args:
        token: What the first connection is told; only its hash is kept.
        grace_s: How long a session waits for another connection.
    """

    def __init__(self, token: str, grace_s: float) -> None:
        self.state = LeaseState.ATTACHED
        self.generation = 1
        self.tokens = Tokens(token)
        self._grace = RunningTimeout(grace_s)
        self._left_at = math.inf

    def detach(self, generation: int, now: float) -> bool:
        """A connection is gone. ATTACHED -> DETACHED, if it was the one that holds the lease.

        Returns:
            Whether it was; a connection that was replaced changes nothing.
        """
        if self.state is not LeaseState.ATTACHED or generation != self.generation:
            return False
        self.state = LeaseState.DETACHED
        self._left_at = now
        return True

    def claim(self, token: str) -> Claim:
        """Check a token. Changes nothing, so that a take-over may still be given up.

        Raises:
            AuthError: It is not the token, or void.
        """
        digest = self.tokens.match(token)
        if digest is None:
            raise wrong_token()
        return Claim(self.generation, digest)

    def take(self, claim: Claim, token: str) -> int:
        """Hand the session to another connection. ATTACHED or DETACHED -> ATTACHED.

        Args:
            token: The next one.

        Returns:
            The new generation. The connection of the old one, if there is one, must be told.

        Raises:
            ProtocolError: Since the claim the lease has changed hands or ended, or its token has
                become void. Nothing changed.
        """
        is_current = claim.generation == self.generation and self.tokens.opens(claim.digest)
        if self.state is LeaseState.ENDED or not is_current:
            raise ProtocolError(
                "another connection has resumed this session meanwhile, or it has ended",
                code=ErrorCode.RESUME_CONFLICT,
            )
        self.tokens.rotate(claim.digest, token)
        self.generation += 1
        self.state = LeaseState.ATTACHED
        return self.generation

    def due_at(self) -> float:
        """When ``is_expired`` is to be asked; never while somebody drives the session."""
        return self._grace.due_at(self._left_at) if self.is_detached else math.inf

    @property
    def is_detached(self) -> bool:
        """Nobody drives the session, and somebody may come."""
        return self.state is LeaseState.DETACHED

    def is_expired(self, now: float) -> bool:
        """Tell whether nobody has come for too long.

        While this process stood still nobody was let in: such time does not count.
        """
        return self.is_detached and self._grace.is_over(self._left_at, now)

    def end(self) -> None:
        """The session is over: every claim that is still open fails."""
        self.state = LeaseState.ENDED


def wrong_token() -> AuthError:
    """Return the refusal of a stranger, who does not learn whether there is such a session."""
    return AuthError(
        "there is no session with this id that this resume_token opens",
        code=ErrorCode.INVALID_RESUME_TOKEN,
        param="resume_token",
    )


def refuse_unknown(token: str) -> AuthError:
    """Return the same refusal for an id that is not known, after as much work."""
    Tokens("").match(token)
    return wrong_token()


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="surrogatepass")).digest()
