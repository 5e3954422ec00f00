"""``POST /v1/realtime/client_secrets``: a server asks for a secret that its browsers may hold.

This module must not know how a secret is made or checked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, TypeVar

import msgspec
from aiohttp import web

from duologue.gateway.auth import Access
from duologue.gateway.client_secrets import MAX_SESSION_BYTES, BoundSession
from duologue.gateway.errors import json_answer
from duologue.gateway.http.body import MAX_SMALL_BODY_BYTES, read_body
from duologue.gateway.http.routes import JSON, Content, Route
from duologue.gateway.http.settings import HttpSettings
from duologue.hosts.port import HostPort
from duologue.protocol.commands import Command, UpdateSession
from duologue.protocol.config_checks import check_range
from duologue.protocol.errors import ErrorCode, over_limit, refused
from duologue.protocol.json_codec import decode_command
from duologue.protocol.json_integers import refuse_wide_integers
from duologue.protocol.json_refusals import refusal, refuse_duplicate_keys
from duologue.protocol.session_config import AnySession
from duologue.protocol.session_patch import SessionPatch

MAX_BODY_BYTES = 2 * MAX_SESSION_BYTES

LIFETIME_S = 600
"""Where the request names none."""

_LIFETIME_RANGE_S = (10, 7200)

T = TypeVar("T")


class ExpiresAfter(msgspec.Struct, frozen=True):
    """How long a secret is to last."""

    anchor: Literal["created_at"] = "created_at"
    seconds: int = LIFETIME_S

    def checked(self, param: str) -> int:
        """Return the seconds, if they lie within the limits."""
        return check_range(self.seconds, _LIFETIME_RANGE_S, param, "s")


class _Model(msgspec.Struct, frozen=True):
    model: str | None = None


class _Request(msgspec.Struct, frozen=True):
    session: _Model | None = None
    expires_after: ExpiresAfter | None = None


class _Settings(msgspec.Struct, frozen=True):
    session: msgspec.Raw = msgspec.Raw(b"{}")


class ClientSecretPage(msgspec.Struct, frozen=True):
    """The answer.

    Args:
        expires_at: Unix seconds; the secret opens as many calls as one likes before that.
        session: What a call that it opens would begin with.
    """

    value: str
    expires_at: int
    session: AnySession


_SETTINGS = msgspec.json.Decoder(_Settings)


class ClientSecretRoutes:
    """The routes that make secrets."""

    def __init__(self, host: HostPort, access: Access, settings: HttpSettings) -> None:
        self._host = host
        self._access = access
        self._settings = settings

    def routes(self) -> Sequence[Route]:
        """For the application."""
        return (
            Route(
                method="POST",
                path="/v1/realtime/client_secrets",
                operation="createClientSecret",
                summary="Make a secret that opens Realtime calls until it expires.",
                handle=self.create,
                body=(Content(JSON, _Request),),
                needs_body=False,
                answers=(Content(JSON, ClientSecretPage),),
                refusals=(400, 413),
                is_work=False,
                needs_key=False,  # it asks for one itself, since it wants to know whose it is
            ),
        )

    async def create(self, request: web.Request) -> web.Response:
        """Make a secret for whoever has an API key."""
        caller = await self._access.let_in(request.headers, (), request.query_string)
        session, lifetime_s = read_request(
            await read_body(request, self._settings, MAX_SMALL_BODY_BYTES)
        )
        preview = await self._host.preview(session.model, session.patch)
        value, expires_at = self._access.issue(caller, session, lifetime_s)
        answer = json_answer(ClientSecretPage(value, expires_at, preview))
        answer.headers["Cache-Control"] = "no-store"
        return answer


def read_request(body: bytes) -> tuple[BoundSession, int]:
    """Return what a secret is to bind, and for how many seconds.

    Raises:
        ClientError: The body is malformed; ``param`` names the field, in ``session`` as in a
            ``session.update``.
    """
    text, asked = checked_object(body, _Request)
    lifetime_s = (asked.expires_after or ExpiresAfter()).checked("expires_after.seconds")
    if asked.session is None:
        return BoundSession(), lifetime_s
    session = bytes(_SETTINGS.decode(text).session)
    return BoundSession(asked.session.model, read_patch(session, decode_command)), lifetime_s


def checked_object(body: bytes, kind: type[T]) -> tuple[bytes, T]:
    """Return a body's JSON, which may be left out, and what it says.

    Raises:
        ClientError: It is malformed; ``param`` names the field.
    """
    if len(body) > MAX_BODY_BYTES:
        raise over_limit("the body", len(body), MAX_BODY_BYTES, "session", "bytes")
    text = body.strip() or b"{}"
    if not text.startswith(b"{"):
        raise refused("the body is no JSON object", None, ErrorCode.INVALID_JSON)
    try:
        asked = msgspec.json.decode(text, type=kind)
    except (msgspec.MsgspecError, RecursionError) as exc:
        raise refusal(exc, text) from None
    refuse_wide_integers(text)
    refuse_duplicate_keys(text)
    return text, asked


def read_patch(session: bytes, decode: Callable[[bytes], Command]) -> SessionPatch:
    """Read the settings exactly as a ``session.update`` of a dialect would."""
    command = decode(b'{"type":"session.update","session":' + session + b"}")
    assert isinstance(command, UpdateSession)
    return command.session
