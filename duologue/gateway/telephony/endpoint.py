"""``WS /v1/telephony/CARRIER/stream``: let a carrier in, upgrade, and hold its call.

This module must not know what is said in a call.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from aiohttp import web

from duologue.core.clock import Clock
from duologue.core.wheel import TimerWheel
from duologue.gateway.admission import Admission
from duologue.gateway.auth import Access, Caller, presented_key
from duologue.gateway.settings import GatewaySettings
from duologue.gateway.telephony.call import PhoneCall
from duologue.gateway.telephony.carrier import MAX_MESSAGE_BYTES, CallStarted, Carrier
from duologue.gateway.telephony.plivo import Plivo
from duologue.gateway.telephony.signed import TwilioRequests
from duologue.gateway.telephony.telnyx import Telnyx
from duologue.gateway.telephony.terms import KEY_PARAMETER, terms_of_call
from duologue.gateway.telephony.twilio import Twilio
from duologue.gateway.ws.accept import choose_accept
from duologue.gateway.ws.channel import ChannelTiming
from duologue.gateway.ws.handshake import check_upgrade, offered_protocols
from duologue.gateway.ws.open_connections import OpenConnections
from duologue.hosts.port import HostPort, Opening
from duologue.sessions.port import Joined
from duologue.sessions.via import Via

BY_PHONE = Via("telephony", "carrier")

CARRIERS: Mapping[str, type[Carrier]] = {"twilio": Twilio, "telnyx": Telnyx, "plivo": Plivo}
"""By the part of the path that names them; another one is a file and a line."""


class PhoneEndpoint:
    """Serves streams of carriers.

    Args:
        requests: Tells whether a request is signed.
        connections: Where the open ones are counted.
    """

    def __init__(
        self,
        host: HostPort,
        admission: Admission,
        access: Access,
        settings: GatewaySettings,
        requests: TwilioRequests,
        timing: ChannelTiming,
        connections: OpenConnections,
    ) -> None:
        self._host = host
        self._admission = admission
        self._access = access
        self._settings = settings.telephony
        self._requests = requests
        self._timing = timing
        self._clock: Clock = timing.clock
        self._wheel: TimerWheel = timing.wheel
        self._accept = choose_accept(settings.private_reader)
        self._connections = connections

    def add_to(self, router: web.UrlDispatcher) -> None:
        """Put the routes into an application."""
        for name, carrier in CARRIERS.items():
            router.add_get(f"/v1/telephony/{name}/stream", partial(self._handle, carrier))

    async def _handle(self, carrier: type[Carrier], request: web.Request) -> web.StreamResponse:
        """Hold one call.

        Raises:
            ClientError: It may not connect, or did not try to.
            CapacityError: No call can begin now.
        """
        caller = await self._caller(carrier, request)
        check_upgrade(request.headers)
        self._admission.check_call()
        with self._connections.counted():
            try:
                response, channel = await self._accept(
                    request, None, MAX_MESSAGE_BYTES, self._timing
                )
            except ConnectionError:
                return web.Response()  # nobody is there to read it
            await PhoneCall(
                channel,
                carrier(),
                partial(self._open, caller),
                self._settings,
                self._clock,
                self._wheel,
            ).run()
        return response

    async def _caller(self, carrier: type[Carrier], request: web.Request) -> Caller | None:
        """Who connects, where the handshake says so; else the first message must."""
        self._access.check_page(request.headers)
        if carrier is Twilio and self._requests.is_signed(request):
            return Caller(self._access.telephony)
        headers, offered = request.headers, offered_protocols(request.headers)
        if presented_key(headers, offered) is None and not request.query_string:
            return None
        return await self._access.let_in_call(headers, offered, request.query_string)

    def _open(self, caller: Caller | None, start: CallStarted) -> tuple[Joined, str]:
        key = start.parameters.get(KEY_PARAMETER)
        if caller is None or key is not None:
            caller = self._access.check_call(_bearer(key))
        terms = terms_of_call(self._settings, caller.session, start.parameters, start.format)
        session = self._host.begin(
            Opening(
                model=terms.model,
                patch=terms.patch,
                owner=caller.owner,
                edge_plays=True,
                via=BY_PHONE,
            )
        )
        return session, terms.greeting


def _bearer(key: str | None) -> Mapping[str, str]:
    return {} if key is None else {"Authorization": f"Bearer {key}"}
