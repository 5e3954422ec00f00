"""Who may come in: API keys and client secrets, wherever clients put them, and origins of pages.

This module must not know what a caller wants.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import parse_qs, urlsplit

from duologue.core.clock import Clock
from duologue.core.errors import AuthError, RateLimited
from duologue.gateway.client_secrets import (
    BoundSession,
    ClientSecret,
    ClientSecrets,
    is_client_secret,
)
from duologue.gateway.keyring import Keyring, as_bytes, job_caller
from duologue.gateway.settings import GatewaySettings
from duologue.hosts.rate_limit import RateLimit
from duologue.protocol.errors import ErrorCode
from duologue.sessions.owners import ANYBODY, Owner
from duologue.telemetry import Metrics

KEY_PROTOCOL = "openai-insecure-api-key."
"""Browsers cannot set headers on a WebSocket; clients put the key into a subprotocol."""

_SCHEMES = ("bearer", "api-key")
"""The second is how clients of openpi say it."""

_MADE_KEY_BYTES = 32
_QUERY_KEY = "api_key"


@dataclass(frozen=True, slots=True)
class Caller:
    """Somebody who may come in.

    Args:
        owner: Of the sessions that he opens: the API key that he has, or that issued his secret,
            by its name. The key itself goes no further than this package.
        session: What his client secret binds a call to.
    """

    owner: Owner
    session: BoundSession | None = None


class SharedCount(Protocol):
    """Counts the requests of each key for all gateways of a host."""

    async def take(self, owner_name: str) -> float:
        """Count a request.

        Returns:
            0 if it may be, else in how many seconds one may be.
        """
        ...


class Access:
    """The rules of one server.

    Args:
        clock: Tells when keys and secrets expire, and how often somebody asks.
        shared: Counts requests for several gateways; without it each counts its own.
    """

    def __init__(
        self,
        settings: GatewaySettings,
        clock: Clock,
        metrics: Metrics,
        shared: SharedCount | None = None,
    ) -> None:
        self._shared = shared
        self._keys = Keyring(settings)
        self._origins = frozenset(settings.allowed_origins)
        self.telephony = Owner("telephony", settings.telephony.max_calls)
        """Whose the phone calls are that a carrier's signature lets in."""

        self._query_keys = settings.query_keys
        self._clock = clock
        self._requests = metrics.key_requests
        self._refused = metrics.key_refused
        signing_keys = [as_bytes(key.get_secret_value()) for key in settings.signing_keys]
        self._secrets = ClientSecrets(signing_keys or [secrets.token_bytes(_MADE_KEY_BYTES)])
        self._rates = {
            key.owner.name: RateLimit(key.requests_per_minute, clock.now())
            for key in self._keys
            if key.requests_per_minute is not None
        }

    async def let_in(
        self, headers: Mapping[str, str], subprotocols: Iterable[str] = (), query_string: str = ""
    ) -> Caller:
        """As ``check``, also where several gateways count requests together."""
        return await self._counted(self.check(headers, subprotocols, query_string))

    async def let_in_call(
        self, headers: Mapping[str, str], subprotocols: Iterable[str] = (), query_string: str = ""
    ) -> Caller:
        """As ``check_call``, also where several gateways count requests together."""
        return await self._counted(self.check_call(headers, subprotocols, query_string))

    def check(
        self, headers: Mapping[str, str], subprotocols: Iterable[str] = (), query_string: str = ""
    ) -> Caller:
        """Let a caller with an API key in, or not.

        Raises:
            AuthError: The page that asks may not, or the key is missing, wrong or a secret.
            RateLimited: The key was used too often of late.
        """
        caller = self.check_call(headers, subprotocols, query_string)
        if caller.session is not None and self._keys:
            raise AuthError(
                "a client secret opens Realtime calls only; this needs an API key",
                code=ErrorCode.KEY_NOT_ALLOWED,
            )
        return caller

    def check_call(
        self, headers: Mapping[str, str], subprotocols: Iterable[str] = (), query_string: str = ""
    ) -> Caller:
        """Let a caller in who wants to hold a Realtime call: a client secret will do.

        Raises:
            AuthError: The page that asks may not, or the key is missing, wrong or expired.
            RateLimited: The key was used too often of late.
        """
        self.check_page(headers)
        key = presented_key(headers, subprotocols)
        if key is None and (key := _query_key(query_string)) is not None:
            self._check_query_keys()
        caller = self._owner_of(key)
        self._count(caller.owner)
        return caller

    def issue(self, caller: Caller, session: BoundSession, lifetime_s: int) -> tuple[str, int]:
        """Make a client secret for a caller.

        Returns:
            The secret, and the Unix time at which it expires.

        Raises:
            LimitExceeded: The settings of its session are too long to travel in a header.
        """
        expires_at = int(self._clock.wall_time()) + lifetime_s
        secret = ClientSecret(caller.owner.name, expires_at, session)
        return self._secrets.issue(secret), expires_at

    def check_page(self, headers: Mapping[str, str]) -> None:
        """Refuse what a web page asks for that may not; programs name no origin.

        Raises:
            AuthError: ``origin_not_allowed``.
        """
        origin = headers.get("Origin")
        if origin is not None and not self.allows_page(origin, headers.get("Host", "")):
            raise AuthError(
                f"pages from {origin[:80]} may not connect; add it to gateway.allowed_origins",
                code=ErrorCode.ORIGIN_NOT_ALLOWED,
            )

    def allows_page(self, origin: str, host: str) -> bool:
        """Tell whether a web page may talk to us: our own, and those of the settings.

        Args:
            host: What the page's browser calls us.
        """
        return "*" in self._origins or origin in self._origins or _host(origin) == host.lower()

    def _owner_of(self, key: str | None) -> Caller:
        wall_time = self._clock.wall_time()
        if key is not None and is_client_secret(key):
            secret = self._secrets.read(key, wall_time)
            if secret.issuer == self.telephony.name:
                return Caller(self.telephony, secret.session)
            # On a server without keys, a secret of a key that there was opens nothing either.
            if self._keys or secret.issuer != ANYBODY.name:
                return Caller(self._keys.named(secret.issuer, wall_time).owner, secret.session)
            return Caller(ANYBODY, secret.session)
        if not self._keys:
            return Caller(ANYBODY)
        return Caller(self._keys.find(key, wall_time).owner)

    def _check_query_keys(self) -> None:
        """Refuse the key in an address where none is wanted, or it would be lost."""
        if not self._query_keys:
            raise AuthError(
                "keys are not taken from the address, which ends up in logs: send 'Authorization: "
                "Bearer <key>', or set gateway.query_keys"
            )

    async def _counted(self, caller: Caller) -> Caller:
        rate = self._rates.get(caller.owner.name)
        if self._shared is not None and rate is not None:
            self._check_wait(caller.owner, rate, await self._shared.take(caller.owner.name))
        return caller

    def _count(self, owner: Owner) -> None:
        rate = self._rates.get(owner.name)
        if rate is not None and self._shared is None:
            self._check_wait(owner, rate, rate.take(self._clock.now()))
        self._requests[owner.name].inc()

    def _check_wait(self, owner: Owner, rate: RateLimit, wait_s: float) -> None:
        if wait_s:
            self._refused[owner.name].inc()
            raise RateLimited(
                f"more than {rate.per_minute} requests a minute with this API key",
                retry_after_s=wait_s,
            )


def presented_key(headers: Mapping[str, str], subprotocols: Iterable[str] = ()) -> str | None:
    """Return the key that a request presents; a header wins over a subprotocol."""
    scheme, _, value = headers.get("Authorization", "").partition(" ")
    if scheme.lower() in _SCHEMES and value.strip():
        return value.strip()
    if key := headers.get("api-key", "").strip():
        return key
    for name in subprotocols:
        if name.startswith(KEY_PROTOCOL):
            return name.removeprefix(KEY_PROTOCOL)
    return None


def caller_id(headers: Mapping[str, str], subprotocols: Iterable[str], query_string: str) -> str:
    """Return what stands for who sent a request that was let in, wherever his key was.

    Jobs and idempotency keys belong to it; the key cannot be told from it.
    """
    key = presented_key(headers, subprotocols)
    return job_caller((_query_key(query_string) if key is None else key) or "")


def _query_key(query_string: str) -> str | None:
    # One stock client appends a query to a URL that may hold one already.
    values = parse_qs(query_string.replace("?", "&")).get(_QUERY_KEY)
    return values[0] if values else None


def _host(origin: str) -> str | None:
    """Host and port of an origin; none for ``null`` and for what is no address."""
    try:
        return urlsplit(origin).netloc.lower() or None
    except ValueError:
        return None
