"""Client secrets: short-lived keys that a server hands to a browser, with a session bound to them.

A secret is a signed token that holds everything about itself, so every edge that knows the signing
key can check it without asking anybody. It is signed, not encrypted: who holds it can read the
session's settings, which the call would show anyway. This module must not know HTTP, nor what a
session is for.
"""

from __future__ import annotations

import binascii
import hashlib
import hmac
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import pybase64

from duologue.core.errors import AuthError
from duologue.protocol.errors import ErrorCode, over_limit
from duologue.protocol.session_patch import SessionPatch

PREFIX = "ek_"
"""Browser builds of stock clients refuse keys that begin otherwise."""

MAX_SECRET_CHARS = 6 * 1024
"""A secret travels in one header, of which proxies and servers take 8 KiB."""

MAX_SESSION_BYTES = 64 * 1024
"""Settings of one secret before they are packed: packing more would hold the loop."""

_VERSION = b"\x01"
_MAC_BYTES = hashlib.sha256().digest_size
_CONTEXT = b"duologue client secret"
"""Signed too, so that nothing else signed with the same key passes for a secret."""


class BoundSession(msgspec.Struct, frozen=True):
    """How a session begins.

    Args:
        model: As a client would ask for it in the URL.
        patch: Applied to the defaults, as a ``session.update`` would be.
    """

    model: str | None = None
    patch: SessionPatch = SessionPatch()


@dataclass(frozen=True, slots=True)
class ClientSecret:
    """What a secret says.

    Args:
        issuer: Name of the API key that asked for it.
        expires_at: Unix seconds; it opens calls before that.
        session: How a call that it opens begins.
    """

    issuer: str
    expires_at: int
    session: BoundSession


class _Claims(msgspec.Struct, frozen=True, array_like=True):
    issuer: str
    expires_at: int
    session: BoundSession


_CLAIMS = msgspec.json.Decoder(_Claims)


class ClientSecrets:
    """Makes and reads the secrets of one service.

    Args:
        signing_keys: The first signs; all are accepted, so that they can be replaced one by one.
    """

    def __init__(self, signing_keys: Sequence[bytes]) -> None:
        self._keys = tuple(signing_keys)

    def issue(self, secret: ClientSecret) -> str:
        """Return the token for a secret.

        Raises:
            LimitExceeded: The settings of its session are too long to travel in a header.
        """
        claims = msgspec.json.encode(_Claims(secret.issuer, secret.expires_at, secret.session))
        if len(claims) > MAX_SESSION_BYTES:
            raise over_limit("session", len(claims), MAX_SESSION_BYTES, "session", "bytes")
        packed = zlib.compress(claims)
        blob = _VERSION + _signature(self._keys[0], packed) + packed
        token = PREFIX + pybase64.urlsafe_b64encode(blob).decode().rstrip("=")
        if len(token) > MAX_SECRET_CHARS:
            raise over_limit(
                "session, packed into the secret (send what is long with session.update)",
                len(token),
                MAX_SECRET_CHARS,
                "session",
                "characters",
            )
        return token

    def read(self, token: str, wall_time: float) -> ClientSecret:
        """Return what a token says, if we signed it and it has not expired.

        Raises:
            AuthError: ``client_secret_expired``, or it is none of ours.
        """
        blob = _blob(token) if len(token) <= MAX_SECRET_CHARS else None
        if blob is None or not self._signed(blob):
            raise AuthError("the client secret is not valid here: ask your server for a new one")
        secret = _unpacked(blob)
        if wall_time >= secret.expires_at:
            raise AuthError(
                f"the client secret expired {int(wall_time) - secret.expires_at} s ago: "
                "ask your server for a new one",
                code=ErrorCode.CLIENT_SECRET_EXPIRED,
            )
        return secret

    def _signed(self, blob: bytes) -> bool:
        given, packed = blob[1 : 1 + _MAC_BYTES], blob[1 + _MAC_BYTES :]
        # All are compared, so that the time tells nothing about the keys.
        matches = [hmac.compare_digest(given, _signature(key, packed)) for key in self._keys]
        return True in matches


def is_client_secret(key: str) -> bool:
    """Tell whether a key has the form of our secrets, genuine or not."""
    return _blob(key) is not None


def _blob(token: str) -> bytes | None:
    """The bytes of a token that has our form."""
    if not token.startswith(PREFIX):
        return None
    text = token[len(PREFIX) :]
    try:
        padded = text.encode("ascii") + b"=" * (-len(text) % 4)
        blob = pybase64.b64decode(padded, altchars=b"-_", validate=True)
    except (UnicodeEncodeError, binascii.Error):
        return None
    return blob if blob[:1] == _VERSION and len(blob) > 1 + _MAC_BYTES else None


def _signature(key: bytes, packed: bytes) -> bytes:
    return hmac.digest(key, _CONTEXT + _VERSION + packed, "sha256")


def _unpacked(blob: bytes) -> ClientSecret:
    """What a genuine token says; we made it, so it is neither broken nor a bomb."""
    claims = _CLAIMS.decode(zlib.decompress(blob[1 + _MAC_BYTES :]))
    return ClientSecret(claims.issuer, claims.expires_at, claims.session)
