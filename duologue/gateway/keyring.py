"""The API keys of a server: whose a presented key is, and what its owner may have.

This module must not know where callers put keys, nor what they want.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterator
from dataclasses import dataclass, field

from duologue.core.errors import AuthError
from duologue.gateway.settings import GatewaySettings
from duologue.sessions.owners import Owner

NO_KEY = "an API key is required: send 'Authorization: Bearer <key>'"


@dataclass(frozen=True, slots=True)
class Key:
    """One API key.

    Args:
        owner: Its name, and how many sessions it may hold open.
        requests_per_minute: None for no limit.
        expires_at: Unix seconds; none for never.
    """

    owner: Owner
    secret: bytes = field(repr=False)
    requests_per_minute: int | None = None
    expires_at: float | None = None


class Keyring:
    """All keys of one server."""

    def __init__(self, settings: GatewaySettings) -> None:
        self._keys = {key.owner.name: key for key in _keys(settings)}

    def __bool__(self) -> bool:
        return bool(self._keys)

    def __iter__(self) -> Iterator[Key]:
        return iter(self._keys.values())

    def find(self, presented: str | None, wall_time: float) -> Key:
        """Return the key that was presented.

        Raises:
            AuthError: There is none, or it is wrong or expired.
        """
        if presented is None:
            raise AuthError(NO_KEY)
        given = as_bytes(presented)
        # All are compared, so that the time tells nothing about the keys.
        matches = [key for key in self if hmac.compare_digest(given, key.secret)]
        if not matches:
            raise AuthError("the API key is not valid here")
        return _in_force(matches[0], wall_time)

    def named(self, name: str, wall_time: float) -> Key:
        """Return the key that issued a client secret.

        Raises:
            AuthError: It was taken away, or has expired: its secrets go with it.
        """
        if name not in self._keys:
            raise AuthError("the API key that issued this client secret is no longer valid")
        return _in_force(self._keys[name], wall_time)


def job_caller(key: str) -> str:
    """Return what stands in a job for the key that it was asked for with; empty for none."""
    return hashlib.sha256(as_bytes(key)).hexdigest()


def as_bytes(key: str) -> bytes:
    """Return a key for comparison.

    A header may hold bytes that are no UTF-8; aiohttp hands them on as surrogates.
    """
    return key.encode(errors="surrogateescape")


def _in_force(key: Key, wall_time: float) -> Key:
    if key.expires_at is not None and wall_time >= key.expires_at:
        raise AuthError("the API key has expired")
    return key


def _keys(settings: GatewaySettings) -> Iterator[Key]:
    for name, secret in settings.plain_keys():
        yield Key(Owner(name), as_bytes(secret.get_secret_value()))
    for named in settings.named_keys:
        yield Key(
            Owner(named.name, named.max_sessions, named.max_requests),
            as_bytes(named.key.get_secret_value()),
            named.requests_per_minute,
            None if named.expires_at is None else named.expires_at.timestamp(),
        )
