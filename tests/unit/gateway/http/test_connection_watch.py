"""A real server lets go of connections that ask for nothing, and keeps those that have asked."""

from __future__ import annotations

from duologue.gateway.http.settings import HttpSettings
from duologue.gateway.settings import GatewaySettings
from tests.faults.gateway_line import line_settings, serving
from tests.unit.gateway.raw_websocket import connected


async def test_a_connection_that_never_asks_is_dropped_and_one_that_has_asked_is_not() -> None:
    http = HttpSettings(first_request_timeout_s=0.2)
    async with serving(line_settings(GatewaySettings(http=http))) as server:
        port = server.port
        async with connected(port) as mute, connected(port) as slow, connected(port) as good:
            slow.write(b"GET /health HTTP/1.1\r\nHost: h\r\nX-")
            assert (await good.ask("/health")).status == 200
            assert await mute.lost() == 0
            assert await slow.lost() == 0
            # It is idle for as long, but it has asked.
            assert (await good.ask("/health")).status == 200
