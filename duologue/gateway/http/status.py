"""``/health``, ``/ready``, ``/metrics``, ``/v1/models``: what the server is, and whether it works.

This module must not change anything.
"""

from __future__ import annotations

from collections.abc import Callable

from aiohttp import web

from duologue import __version__
from duologue.core.errors import CapacityError
from duologue.gateway.errors import error_response
from duologue.sessions.manager import SessionManager
from duologue.telemetry import Metrics
from duologue.telemetry.exposition import Exposition


class StatusRoutes:
    """The routes that look.

    Args:
        is_ready: Whether all models are loaded.
        started_at: Unix seconds; the models' ``created``.
    """

    def __init__(
        self,
        sessions: SessionManager,
        metrics: Metrics,
        is_ready: Callable[[], bool],
        started_at: float,
    ) -> None:
        self._sessions = sessions
        self._exposition = Exposition(metrics, version=__version__)
        self._is_ready = is_ready
        self._started_at = int(started_at)

    async def health(self, _request: web.Request) -> web.Response:
        """The process runs."""
        return web.json_response({"status": "ok"})

    async def ready(self, _request: web.Request) -> web.Response:
        """A call could begin now; otherwise 503 with the reason."""
        try:
            if not self._is_ready():
                raise CapacityError(
                    "the models are still loading", code="server_not_ready", retry_after_s=2.0
                )
            self._sessions.check_room()
        except CapacityError as exc:
            return error_response(exc)
        return web.json_response({"status": "ready", "sessions": len(self._sessions)})

    async def metrics(self, request: web.Request) -> web.Response:
        """Figures in Prometheus' text format."""
        page = self._exposition.page(request.headers.get("Accept", ""))
        return web.Response(body=page.body, headers={"Content-Type": page.content_type})

    async def models(self, _request: web.Request) -> web.Response:
        """The models that a session can be opened with."""
        return web.json_response(
            {
                "object": "list",
                "data": [
                    {
                        "id": name,
                        "object": "model",
                        "created": self._started_at,
                        "owned_by": "duologue",
                    }
                    for name in self._sessions.models
                ],
            }
        )
