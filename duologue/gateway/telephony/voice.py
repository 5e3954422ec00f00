"""``POST /v1/telephony/twilio/voice``: what Twilio asks when somebody calls a number.

The answer connects the call to us. This module must not know how a call is held.
"""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import parse_qsl
from xml.sax.saxutils import quoteattr

from aiohttp import web

from duologue.core.errors import AuthError
from duologue.gateway.auth import Access, Caller
from duologue.gateway.client_secrets import BoundSession
from duologue.gateway.http.body import MAX_SMALL_BODY_BYTES, read_body
from duologue.gateway.http.routes import Content, Route
from duologue.gateway.http.settings import HttpSettings
from duologue.gateway.telephony.signature import HEADER
from duologue.gateway.telephony.signed import TwilioRequests
from duologue.gateway.telephony.terms import KEY_PARAMETER

TICKET_S = 60
"""How long the call has to reach us; it takes a second."""

MAX_BODY_BYTES = 64 * 1024
FORM = "application/x-www-form-urlencoded"
XML = "text/xml"


class TwilioVoiceRoutes:
    """The route that Twilio is given for a number."""

    def __init__(self, access: Access, requests: TwilioRequests, settings: HttpSettings) -> None:
        self._access = access
        self._requests = requests
        # Whoever asks has to be read before it is known whether he may.
        self._settings = settings.model_copy(update={"max_body_bytes": MAX_BODY_BYTES})

    def routes(self) -> Sequence[Route]:
        """For the application."""
        return (
            Route(
                method="POST",
                path="/v1/telephony/twilio/voice",
                operation="answerTwilioCall",
                summary="Answer a call to a number at Twilio: connect it to this server.",
                handle=self._answer,
                body=(Content(FORM),),
                needs_body=False,
                answers=(Content(XML),),
                refusals=(400, 413),
                is_work=False,
                needs_key=False,  # Twilio signs instead
            ),
        )

    async def _answer(self, request: web.Request) -> web.Response:
        caller = await self._caller(request)
        ticket, _ = self._access.issue(caller, caller.session or BoundSession(), TICKET_S)
        base = self._requests.base_url(request).partition("://")[2]
        address = quoteattr(f"wss://{base}/v1/telephony/twilio/stream")
        return web.Response(
            text=(
                '<?xml version="1.0" encoding="UTF-8"?>'
                f"<Response><Connect><Stream url={address}>"
                f'<Parameter name="{KEY_PARAMETER}" value={quoteattr(ticket)}/>'
                "</Stream></Connect></Response>"
            ),
            content_type=XML,
            headers={"Cache-Control": "no-store"},
        )

    async def _caller(self, request: web.Request) -> Caller:
        body = await read_body(request, self._settings, MAX_SMALL_BODY_BYTES)
        if not self._requests.are_signed:
            return await self._access.let_in(request.headers, (), request.query_string)
        fields = parse_qsl(body.decode("latin-1"), keep_blank_values=True, encoding="utf-8")
        if not self._requests.is_signed(request, fields):
            raise AuthError(
                f"the signature in {HEADER} is missing or wrong; if a proxy changes the address, "
                "set gateway.telephony.public_url to what Twilio was given"
            )
        return Caller(self._access.telephony)
