"""``/health``, ``/ready``, ``/metrics``, ``/v1/models``: what the server is, and whether it works.

This module must not change anything.
"""

from __future__ import annotations

import asyncio

import msgspec
from aiohttp import web

from duologue import __version__
from duologue.core.errors import CapacityError
from duologue.gateway.admission import Admission
from duologue.gateway.auth import Access
from duologue.gateway.errors import json_answer, refusal
from duologue.protocol.errors import error_body
from duologue.protocol.events import ErrorBody
from duologue.sessions.manager import SessionManager
from duologue.telemetry import Metrics
from duologue.telemetry.exposition import Exposition


class Health(msgspec.Struct, frozen=True):
    """``/health``."""

    status: str = "ok"


class Readiness(msgspec.Struct, frozen=True, omit_defaults=True):
    """``/ready``: what there is, and where it is not ready, why.

    Args:
        workers_ready: While models are loading, how far that is.
    """

    status: str
    sessions: int
    workers_ready: int
    workers: int
    error: ErrorBody | None = None


class ModelCard(msgspec.Struct, frozen=True):
    """One entry of ``/v1/models``."""

    id: str
    created: int
    object: str = "model"
    owned_by: str = "duologue"


class ModelList(msgspec.Struct, frozen=True):
    """``/v1/models``."""

    data: list[ModelCard]
    object: str = "list"


class StatusRoutes:
    """The routes that look.

    Args:
        started_at: Unix seconds; the models' ``created``.
    """

    def __init__(
        self,
        sessions: SessionManager,
        admission: Admission,
        access: Access,
        metrics: Metrics,
        started_at: float,
    ) -> None:
        self._sessions = sessions
        self._admission = admission
        self._access = access
        self._exposition = Exposition(metrics, version=__version__)
        self._started_at = int(started_at)

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
        page = await asyncio.to_thread(self._exposition.page, request.headers.get("Accept", ""))
        return web.Response(body=page.body, headers={"Content-Type": page.content_type})

    async def models(self, request: web.Request) -> web.Response:
        """The models that a session can be opened with, for those who may open one."""
        self._access.check(request.headers)
        cards = [ModelCard(name, self._started_at) for name in self._sessions.models]
        return json_answer(ModelList(cards))

    def _readiness(self, status: str, error: ErrorBody | None) -> Readiness:
        workers = self._admission.workers
        return Readiness(status, len(self._sessions), workers.ready, workers.total, error)
