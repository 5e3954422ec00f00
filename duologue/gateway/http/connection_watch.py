"""Watches the connections of a server: those that come to no request, and those that take nothing.

What it uses of aiohttp's inside is here: a connection's count of requests. This module must not
know when a connection is let go.
"""

from __future__ import annotations

import asyncio

from aiohttp import web

from duologue.core.clock import Clock
from duologue.core.wheel import TimerWheel
from duologue.gateway.http.first_request import FirstRequests
from duologue.gateway.http.settings import HttpSettings
from duologue.gateway.http.stalled import StalledClients


class ConnectionWatch:
    """Both, for one server."""

    def __init__(
        self, runner: web.AppRunner, clock: Clock, wheel: TimerWheel, settings: HttpSettings
    ) -> None:
        self._runner = runner
        self._stalled = StalledClients(self._transports, clock, wheel, settings.stall_limit_s)
        self._silent = FirstRequests(self._waiting, clock, wheel, settings.first_request_timeout_s)

    def start(self) -> None:
        """Begin to look."""
        self._stalled.start()
        self._silent.start()

    def stop(self) -> None:
        """Look no more."""
        self._stalled.stop()
        self._silent.stop()

    def _transports(self) -> list[asyncio.Transport]:
        handlers = [] if self._runner.server is None else self._runner.server.connections
        transports = (handler.transport for handler in handlers)
        return [transport for transport in transports if transport is not None]

    def _waiting(self) -> list[asyncio.Transport]:
        handlers = [] if self._runner.server is None else self._runner.server.connections
        silent = (each for each in handlers if not getattr(each, "_request_count", 1))
        return [each.transport for each in silent if each.transport is not None]
