"""The key of who runs the server, which opens what no API key does.

This module must not know what it opens.
"""

from __future__ import annotations

import hmac

from aiohttp import web

from duologue.core.errors import AuthError
from duologue.gateway.auth import Access, presented_key
from duologue.gateway.keyring import as_bytes
from duologue.gateway.settings import GatewaySettings


class AdminKey:
    """``gateway.admin_key``."""

    def __init__(self, access: Access, settings: GatewaySettings) -> None:
        self._access = access
        key = settings.admin_key
        self._key = None if key is None else as_bytes(key.get_secret_value())

    def __bool__(self) -> bool:
        """There is one: without, there is nothing to open."""
        return self._key is not None

    def check(self, request: web.Request) -> None:
        """Let nobody through but who has it.

        Raises:
            AuthError: It is missing or wrong. An API key opens nothing here.
        """
        self._access.check_page(request.headers)
        given = presented_key(request.headers)
        if given is None:
            raise AuthError("the admin key is required: send 'Authorization: Bearer <key>'")
        if self._key is None or not hmac.compare_digest(as_bytes(given), self._key):
            raise AuthError("this is not the admin key")
