"""The beta dialect's ways to a client secret: ``POST /v1/realtime/sessions`` and its sister.

The settings lie flat in the body, and the answer is the flat session with the secret in it. This
module must not know how a secret is made or checked.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import msgspec
from aiohttp import web

from duologue.gateway.auth import Access
from duologue.gateway.client_secrets import BoundSession
from duologue.gateway.http.body import MAX_SMALL_BODY_BYTES, read_body
from duologue.gateway.http.client_secrets import ExpiresAfter, checked_object, read_patch
from duologue.gateway.http.routes import JSON, Content, Route
from duologue.gateway.http.settings import HttpSettings
from duologue.hosts.port import HostPort
from duologue.protocol.beta_codec import decode_beta_command
from duologue.protocol.beta_objects import BetaSession, BetaTranscriptionSession, beta_session
from duologue.protocol.session_config import SessionKind


class _Secret(msgspec.Struct, frozen=True):
    expires_after: ExpiresAfter | None = None


class _Request(msgspec.Struct, frozen=True):
    model: str | None = None
    client_secret: _Secret | None = None


class BetaClientSecret(msgspec.Struct, frozen=True):
    """The secret in an answer; ``expires_at`` is Unix seconds."""

    value: str
    expires_at: int


class BetaSecretRoutes:
    """The routes that make secrets."""

    def __init__(self, host: HostPort, access: Access, settings: HttpSettings) -> None:
        self._host = host
        self._access = access
        self._settings = settings

    def routes(self) -> Sequence[Route]:
        """For the application."""
        return (
            self._route("realtime", "sessions", "createRealtimeSession", BetaSession),
            self._route(
                "transcription",
                "transcription_sessions",
                "createTranscriptionSession",
                BetaTranscriptionSession,
            ),
        )

    def _route(self, kind: SessionKind, name: str, operation: str, answer: type) -> Route:
        return Route(
            method="POST",
            path=f"/v1/realtime/{name}",
            operation=operation,
            summary=f"Make a secret for {kind} sessions, in the form of the beta dialect.",
            handle=partial(self._create, kind),
            body=(Content(JSON, _Request),),
            needs_body=False,
            answers=(Content(JSON, answer),),
            refusals=(400, 413),
            is_work=False,
            needs_key=False,  # it asks for one itself, since it wants to know whose it is
        )

    async def _create(self, kind: SessionKind, request: web.Request) -> web.Response:
        caller = await self._access.let_in(request.headers, (), request.query_string)
        body = await read_body(request, self._settings, MAX_SMALL_BODY_BYTES)
        text, asked = checked_object(body, _Request)
        lifetime = (asked.client_secret or _Secret()).expires_after or ExpiresAfter()
        lifetime_s = lifetime.checked("client_secret.expires_after.seconds")
        patch = msgspec.structs.replace(read_patch(text, decode_beta_command), type=kind)
        preview = await self._host.preview(asked.model, patch)
        value, expires_at = self._access.issue(caller, BoundSession(asked.model, patch), lifetime_s)
        secret = msgspec.json.encode(BetaClientSecret(value, expires_at))
        session = msgspec.json.encode(beta_session(preview))
        return web.Response(
            body=b'%b,"client_secret":%b}' % (session[:-1], secret),
            content_type=JSON,
            headers={"Cache-Control": "no-store"},
        )
