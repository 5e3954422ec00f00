"""Who may come in: API keys and client secrets, wherever clients put them, and origins of pages.

This module must not know what a caller wants.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from duologue.core.clock import Clock
from duologue.core.errors import AuthError
from duologue.gateway.client_secrets import (
    BoundSession,
    ClientSecret,
    ClientSecrets,
    is_client_secret,
)
from duologue.gateway.settings import GatewaySettings
from duologue.protocol.errors import ErrorCode

KEY_PROTOCOL = "openai-insecure-api-key."
"""Browsers cannot set headers on a WebSocket; clients put the key into a subprotocol."""


ANYBODY = "anybody"
"""The name that stands for all callers of a server without keys."""

_MADE_KEY_BYTES = 32


@dataclass(frozen=True, slots=True)
class Caller:
    """Somebody who may come in.

    Args:
        key_name: Name of the API key, his own or the one that issued his secret; for limits,
            figures and logs. The key itself goes no further than this module.
        session: What his client secret binds a call to.
    """

    key_name: str
    session: BoundSession | None = None


class Access:
    """The rules of one server.

    Args:
        clock: Tells when secrets expire.
    """

    def __init__(self, settings: GatewaySettings, clock: Clock) -> None:
        keys = enumerate(settings.api_keys, 1)
        self._keys = {f"key-{number}": _as_bytes(key.get_secret_value()) for number, key in keys}
        self._origins = frozenset(settings.allowed_origins)
        self._wall_time = clock.wall_time
        signing_keys = [_as_bytes(key.get_secret_value()) for key in settings.signing_keys]
        self._secrets = ClientSecrets(signing_keys or [secrets.token_bytes(_MADE_KEY_BYTES)])

    def check(self, headers: Mapping[str, str], subprotocols: Iterable[str] = ()) -> Caller:
        """Let a caller with an API key in, or not.

        Raises:
            AuthError: The page that asks may not, or the key is missing, wrong or a secret.
        """
        caller = self.check_call(headers, subprotocols)
        if caller.session is not None:
            raise AuthError(
                "a client secret opens Realtime calls only; this needs an API key",
                code=ErrorCode.KEY_NOT_ALLOWED,
            )
        return caller

    def check_call(self, headers: Mapping[str, str], subprotocols: Iterable[str] = ()) -> Caller:
        """Let a caller in who wants to hold a Realtime call: a client secret will do.

        Raises:
            AuthError: The page that asks may not, or the key is missing, wrong or expired.
        """
        origin = headers.get("Origin")
        if origin is not None and not self.allows_page(origin, headers.get("Host", "")):
            raise AuthError(
                f"pages from {origin[:80]} may not connect; add it to gateway.allowed_origins",
                code=ErrorCode.ORIGIN_NOT_ALLOWED,
            )
        return self._owner_of(presented_key(headers, subprotocols))

    def issue(self, caller: Caller, session: BoundSession, lifetime_s: int) -> tuple[str, int]:
        """Make a client secret for a caller.

        Returns:
            The secret, and the Unix time at which it expires.

        Raises:
            LimitExceeded: The settings of its session are too long to travel in a header.
        """
        expires_at = int(self._wall_time()) + lifetime_s
        return self._secrets.issue(ClientSecret(caller.key_name, expires_at, session)), expires_at

    def allows_page(self, origin: str, host: str) -> bool:
        """Tell whether a web page may talk to us: our own, and those of the settings.

        Args:
            host: What the page's browser calls us.
        """
        return "*" in self._origins or origin in self._origins or _host(origin) == host.lower()

    def _owner_of(self, key: str | None) -> Caller:
        if key is not None and is_client_secret(key):
            return self._holder_of(key)
        if not self._keys:
            return Caller(ANYBODY)
        if key is None:
            raise AuthError("an API key is required: send 'Authorization: Bearer <key>'")
        given = _as_bytes(key)
        # All are compared, so that the time tells nothing about the keys.
        matches = [name for name, known in self._keys.items() if hmac.compare_digest(given, known)]
        if not matches:
            raise AuthError("the API key is not valid here")
        return Caller(matches[0])

    def _holder_of(self, token: str) -> Caller:
        secret = self._secrets.read(token, self._wall_time())
        if secret.issuer not in (self._keys or (ANYBODY,)):
            # Whoever takes a key out of the settings means its secrets, too.
            raise AuthError("the API key that issued this client secret is no longer valid")
        return Caller(secret.issuer, secret.session)


def presented_key(headers: Mapping[str, str], subprotocols: Iterable[str] = ()) -> str | None:
    """Return the key that a request presents; a header wins over a subprotocol."""
    scheme, _, value = headers.get("Authorization", "").partition(" ")
    if scheme.lower() == "bearer" and value.strip():
        return value.strip()
    if key := headers.get("api-key", "").strip():
        return key
    for name in subprotocols:
        if name.startswith(KEY_PROTOCOL):
            return name.removeprefix(KEY_PROTOCOL)
    return None


def _as_bytes(key: str) -> bytes:
    # A header may hold bytes that are no UTF-8; aiohttp hands them on as surrogates.
    return key.encode(errors="surrogateescape")


def _host(origin: str) -> str | None:
    """Host and port of an origin; none for ``null`` and for what is no address."""
    try:
        return urlsplit(origin).netloc.lower() or None
    except ValueError:
        return None
