"""``POST /v1/realtime/calls`` and what can be done with a call.

This module must not know how a call is held.
"""

from __future__ import annotations

import msgspec
from aiohttp import web

from duologue.core.errors import ProtocolError
from duologue.gateway.admission import Admission
from duologue.gateway.auth import Access, Caller
from duologue.gateway.client_secrets import MAX_SESSION_BYTES, BoundSession
from duologue.gateway.http.body import MAX_SMALL_BODY_BYTES, read_body, read_form
from duologue.gateway.http.client_secrets import read_request
from duologue.gateway.http.routes import FORM, Content, Parameter, Route
from duologue.gateway.http.settings import HttpSettings
from duologue.gateway.webrtc.calls import Calls, unsupported
from duologue.gateway.webrtc.offer import read_offer
from duologue.hosts.port import Return
from duologue.protocol.errors import ErrorCode, over_limit, refused

SDP = "application/sdp"
CALLS_PATH = "/v1/realtime/calls"

_PHONE_ACTIONS = ("accept", "reject", "refer")
_CALL_ID = Parameter("call_id", "The last part of the call's Location.", in_path=True)


class CallForm(msgspec.Struct, frozen=True):
    """An offer, and how the call's session begins."""

    sdp: str
    """The offer."""

    session: str | None = None
    """In JSON, as in ``session.update``, with the ``model``."""


class CallRoutes:
    """The routes of WebRTC calls."""

    def __init__(
        self, calls: Calls, admission: Admission, access: Access, settings: HttpSettings
    ) -> None:
        self._calls = calls
        self._admission = admission
        self._access = access
        self._settings = settings

    def routes(self) -> list[Route]:
        """Return them. They check keys by themselves, since a client secret will do."""
        return [
            Route(
                method="POST",
                path=CALLS_PATH,
                operation="createRealtimeCall",
                summary="Open a call over WebRTC: an SDP offer in, the answer out.",
                handle=self.create,
                body=(Content(SDP), Content(FORM, CallForm)),
                status=201,
                answers=(Content(SDP),),
                parameters=(
                    Parameter("model", "The model to talk with."),
                    Parameter("resumable", "1: the session outlives the call's connection."),
                    Parameter("session_id", "The session to go on with."),
                    Parameter("resume_token", "Its latest token."),
                ),
                refusals=(400, 401, 403, 408, 409, 410, 413, 415, 429, 501, 503),
                is_work=False,
                needs_key=False,
            ),
            Route(
                method="POST",
                path=f"{CALLS_PATH}/{{call_id}}/hangup",
                operation="hangUpRealtimeCall",
                summary="End a call.",
                handle=self.hang_up,
                parameters=(_CALL_ID,),
                refusals=(401, 403, 404),
                is_work=False,
                needs_key=False,
            ),
            *(
                Route(
                    method="POST",
                    path=f"{CALLS_PATH}/{{call_id}}/{action}",
                    operation=f"{action}RealtimeCall",
                    summary="For calls over SIP, which are not taken: always refused.",
                    handle=self.refuse,
                    parameters=(_CALL_ID,),
                    refusals=(400, 401, 403),
                    is_work=False,
                    needs_key=False,
                )
                for action in _PHONE_ACTIONS
            ),
        ]

    async def create(self, request: web.Request) -> web.Response:
        """Open a call for whoever may hold one."""
        caller = await self._access.let_in_call(request.headers, (), request.query_string)
        back = _back(request, caller)
        if back is None:
            self._admission.check_call()
        else:
            self._admission.check_loaded()
        sdp, asked = await self._read(request)
        call_id, answer = await self._calls.open(
            read_offer(sdp),
            request.query.get("model"),
            asked,
            caller,
            resumable=request.query.get("resumable") == "1",
            back=back,
        )
        return web.Response(
            status=201,
            text=answer,
            content_type=SDP,
            headers={"Location": f"{CALLS_PATH}/{call_id}"},
        )

    async def hang_up(self, request: web.Request) -> web.Response:
        """End a call of the caller's own."""
        caller = await self._access.let_in_call(request.headers, (), request.query_string)
        await self._calls.hang_up(request.match_info["call_id"], caller)
        return web.Response()

    async def refuse(self, request: web.Request) -> web.Response:
        """Say that phone calls are not taken."""
        await self._access.let_in_call(request.headers, (), request.query_string)
        raise unsupported(request.path.rpartition("/")[2])

    async def _read(self, request: web.Request) -> tuple[str, BoundSession]:
        """Return the offer and the settings that a body carries."""
        if request.content_type == SDP:
            body = await read_body(request, self._settings, MAX_SMALL_BODY_BYTES)
            try:
                return body.decode(), BoundSession()
            except UnicodeDecodeError:
                raise refused("the offer is not text in UTF-8", "sdp") from None
        if request.content_type != FORM:
            raise refused(
                f"the body is {request.content_type[:80]}: send the offer's SDP as {SDP}, or a "
                f"form ({FORM}) with the parts 'sdp' and 'session'",
                None,
                ErrorCode.UNSUPPORTED_MEDIA_TYPE,
            )
        form = await read_form(request, self._settings, MAX_SMALL_BODY_BYTES)
        parts = {name: values[-1] for name, values in form.values.items()}
        for name, file in form.files.items():
            parts.setdefault(name, file.data.decode(errors="replace"))
        if "sdp" not in parts:
            raise ProtocolError(
                "the form has no part 'sdp'", code=ErrorCode.MISSING_PARAMETER, param="sdp"
            )
        return parts["sdp"], _session(parts.get("session", ""))


def _back(request: web.Request, caller: Caller) -> Return | None:
    """Return the session that a caller wants to go on with, if that is what he wants."""
    session_id, token = request.query.get("session_id"), request.query.get("resume_token")
    if session_id is None or token is None:
        return None
    return Return(session_id=session_id, resume_token=token, owner=caller.owner)


def _session(given: str) -> BoundSession:
    if not given.strip():
        return BoundSession()
    if len(given) > MAX_SESSION_BYTES:
        raise over_limit("the session", len(given), MAX_SESSION_BYTES, "session", "characters")
    bound, _ = read_request(f'{{"session":{given}}}'.encode())
    return bound
