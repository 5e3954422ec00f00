"""``/health``, ``/ready``, ``/metrics``: whether the server works, and how.

This module must not change anything.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import msgspec
from aiohttp import web

from duologue import __version__
from duologue.core.errors import CapacityError
from duologue.engines.pools.start_report import StartReport
from duologue.gateway.admission import Admission
from duologue.gateway.errors import json_answer, refusal
from duologue.gateway.http.routes import JSON, Content, Route
from duologue.hosts.port import HostPort
from duologue.protocol.errors import error_body
from duologue.protocol.events import ErrorBody
from duologue.telemetry import Metrics
from duologue.telemetry.exposition import Exposition, Page
from duologue.telemetry.looks import Look, take_looks


class Health(msgspec.Struct, frozen=True):
    """``/health``."""

    status: str = "ok"


class Readiness(msgspec.Struct, frozen=True, omit_defaults=True):
    """``/ready``: what there is, and where it is not ready, why.

    Args:
        workers_ready: While models are loading, how far that is.
        asleep: Stages that sleep: what needs them is refused, or wakes them. ``paused``: that
            begin no work. Neither makes the server unready, since somebody wanted it so.
        start: How long its models took to load, phase by phase.
        max_sessions: How many sessions there may be: as was set, or as many as the models hold.
    """

    status: str
    sessions: int
    workers_ready: int
    workers: int
    max_sessions: int = 0
    error: ErrorBody | None = None
    asleep: list[str] = []
    paused: list[str] = []
    start: StartReport | None = None


FiguresPage = Callable[[str], Awaitable[Page]]
"""Writes the figures of several processes, for an ``Accept`` header."""


class StatusRoutes:
    """The routes that look.

    Args:
        refresh: Called before figures are handed out, for those that nobody writes meanwhile.
        page: Where there are several processes; else those of ``metrics`` are shown.
    """

    def __init__(
        self,
        host: HostPort,
        admission: Admission,
        metrics: Metrics,
        refresh: Sequence[Look] = (),
        page: FiguresPage | None = None,
    ) -> None:
        self._refresh = refresh
        self._page = page
        self._host = host
        self._admission = admission
        self._exposition = Exposition(metrics, version=__version__)

    def routes(self) -> Sequence[Route]:
        """For the application. Probes and scrapers have no key."""
        return (
            Route(
                method="GET",
                path="/health",
                operation="getHealth",
                summary="Tell whether the process runs.",
                handle=self.health,
                answers=(Content(JSON, Health),),
                is_work=False,
                needs_key=False,
            ),
            Route(
                method="GET",
                path="/ready",
                operation="getReadiness",
                summary="Tell whether a call could begin now; 503 says why not.",
                handle=self.ready,
                answers=(Content(JSON, Readiness),),
                refusals=(503,),
                is_work=False,
                needs_key=False,
            ),
            Route(
                method="GET",
                path="/metrics",
                operation="getMetrics",
                summary="Figures in Prometheus' text format.",
                handle=self.metrics,
                answers=(Content("text/plain"),),
                is_work=False,
                needs_key=False,
            ),
        )

    async def health(self, _request: web.Request) -> web.Response:
        """The process runs."""
        return json_answer(Health())

    async def ready(self, _request: web.Request) -> web.Response:
        """A call could begin now; otherwise 503 with the reason."""
        try:
            self._admission.check_ready()
        except CapacityError as exc:
            return refusal(exc, self._readiness("not_ready", error_body(exc)))
        return json_answer(self._readiness("ready", None))

    async def metrics(self, request: web.Request) -> web.Response:
        """Figures in Prometheus' text format."""
        # It takes milliseconds and reads files. The figures may move meanwhile, as between scrapes.
        await take_looks(self._refresh)
        accept = request.headers.get("Accept", "")
        if self._page is not None:
            page = await self._page(accept)
        else:
            page = await asyncio.to_thread(self._exposition.page, accept)
        return web.Response(body=page.body, headers={"Content-Type": page.content_type})

    def _readiness(self, status: str, error: ErrorBody | None) -> Readiness:
        workers = self._admission.workers
        return Readiness(
            status=status,
            sessions=len(self._host),
            workers_ready=workers.ready,
            workers=workers.total,
            max_sessions=workers.max_sessions,
            error=error,
            asleep=list(workers.asleep),
            paused=list(workers.paused),
            start=workers.start if workers.start is not None and workers.start.workers else None,
        )
