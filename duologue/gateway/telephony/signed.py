"""Which requests come from Twilio, and by what address it knows us.

This module must not know what a request is about.
"""

from __future__ import annotations

from collections.abc import Iterable

from aiohttp import web

from duologue.gateway.telephony.settings import TelephonySettings
from duologue.gateway.telephony.signature import HEADER, is_signed


class TwilioRequests:
    """Checks signatures with the token of the settings."""

    def __init__(self, settings: TelephonySettings) -> None:
        token = settings.twilio_auth_token
        self._token = None if token is None else token.get_secret_value().encode()
        self._public_url = settings.public_url

    @property
    def are_signed(self) -> bool:
        """Whether signatures are checked."""
        return self._token is not None

    def is_signed(self, request: web.Request, fields: Iterable[tuple[str, str]] = ()) -> bool:
        """Tell whether a request is signed with the token.

        Twilio signs the address that it was given. A server behind a proxy cannot know it for
        sure, so several are tried; whoever does not have the token can sign none of them.
        """
        given = request.headers.get(HEADER)
        if self._token is None or given is None:
            return False
        return is_signed(self._token, given, self._addresses(request), fields)

    def base_url(self, request: web.Request) -> str:
        """The address of this server as the other side knows it, without a path."""
        if self._public_url is not None:
            return self._public_url
        scheme = request.headers.get("X-Forwarded-Proto", request.scheme)
        return f"{'https' if scheme in ('https', 'wss') else 'http'}://{request.host}"

    def _addresses(self, request: web.Request) -> list[str]:
        rest = self.base_url(request).partition("://")[2]
        paths = [request.raw_path]
        if "?" not in request.raw_path:
            paths.append(f"{request.raw_path}/")  # so it signs some addresses of streams
        return [
            f"{scheme}://{rest}{path}"
            for scheme in ("https", "wss", "http", "ws")
            for path in paths
        ]
