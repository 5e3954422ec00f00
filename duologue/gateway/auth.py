"""Who may come in: API keys, wherever clients put them, and the origins of web pages.

This module must not know what a caller wants.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

from pydantic import SecretStr

from duologue.core.errors import AuthError

KEY_PROTOCOL = "openai-insecure-api-key."
"""Browsers cannot set headers on a WebSocket; clients put the key into a subprotocol."""

REALTIME_PROTOCOL = "realtime"
"""The one subprotocol that is ever selected; one that holds a key is never echoed."""


def presented_key(headers: Mapping[str, str], subprotocols: Iterable[str] = ()) -> str | None:
    """Return the key that a request presents; a header wins over a subprotocol."""
    scheme, _, value = headers.get("Authorization", "").partition(" ")
    if scheme.lower() == "bearer" and value:
        return value.strip()
    if key := headers.get("api-key"):
        return key
    for name in subprotocols:
        if name.startswith(KEY_PROTOCOL):
            return name.removeprefix(KEY_PROTOCOL)
    return None


def check_key(key: str | None, allowed: Iterable[SecretStr]) -> None:
    """Let a caller in, or not; takes the same time for every wrong key.

    Raises:
        AuthError: Keys are required and this is none of them.
    """
    keys = [secret.get_secret_value().encode() for secret in allowed]
    if not keys:
        return
    if key is None:
        raise AuthError("an API key is required: send 'Authorization: Bearer <key>'")
    given = key.encode()
    matches = [hmac.compare_digest(given, known) for known in keys]
    if not any(matches):
        raise AuthError("the API key is not valid here")


def check_origin(origin: str | None, host: str, allowed: Iterable[str]) -> None:
    """Refuse a web page of another site; programs send no origin.

    Raises:
        AuthError: The page's origin is neither our own nor allowed.
    """
    if origin is None or (origin == "null" and "null" in allowed):
        return
    names = tuple(allowed)
    if "*" in names or origin in names or urlsplit(origin).netloc == host:
        return
    raise AuthError(
        f"pages from {origin[:80]} may not connect; add it to gateway.allowed_origins",
        code="origin_not_allowed",
    )
