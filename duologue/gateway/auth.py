"""Who may come in: API keys, wherever clients put them, and the origins of web pages.

This module must not know what a caller wants.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

from duologue.core.errors import AuthError
from duologue.gateway.settings import GatewaySettings
from duologue.protocol.errors import ErrorCode

KEY_PROTOCOL = "openai-insecure-api-key."
"""Browsers cannot set headers on a WebSocket; clients put the key into a subprotocol."""


class Access:
    """The rules of one server."""

    def __init__(self, settings: GatewaySettings) -> None:
        self._keys = [_as_bytes(key.get_secret_value()) for key in settings.api_keys]
        self._origins = frozenset(settings.allowed_origins)

    def check(self, headers: Mapping[str, str], subprotocols: Iterable[str] = ()) -> None:
        """Let a caller in, or not.

        Raises:
            AuthError: The page that asks may not, or the key is missing or wrong.
        """
        origin = headers.get("Origin")
        if origin is not None and not self.allows_page(origin, headers.get("Host", "")):
            raise AuthError(
                f"pages from {origin[:80]} may not connect; add it to gateway.allowed_origins",
                code=ErrorCode.ORIGIN_NOT_ALLOWED,
            )
        self._check_key(presented_key(headers, subprotocols))

    def allows_page(self, origin: str, host: str) -> bool:
        """Tell whether a web page may talk to us: our own, and those of the settings.

        Args:
            host: What the page's browser calls us.
        """
        return "*" in self._origins or origin in self._origins or _host(origin) == host.lower()

    def _check_key(self, key: str | None) -> None:
        if not self._keys:
            return
        if key is None:
            raise AuthError("an API key is required: send 'Authorization: Bearer <key>'")
        given = _as_bytes(key)
        # All are compared, so that the time tells nothing about the keys.
        matches = [hmac.compare_digest(given, known) for known in self._keys]
        if True not in matches:
            raise AuthError("the API key is not valid here")


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
