"""Counts what HTTP requests are answered, by route and class of status.

This module must not know what a route does.
"""

from __future__ import annotations

from pathlib import PurePosixPath

from aiohttp import web

from duologue.telemetry import Metrics

PAGE = "page"
"""Stands for all files of web pages."""

NOWHERE = "nowhere"
"""Stands for all paths that no route has: they are the choice of whoever asks."""

_PAGE_SUFFIXES = frozenset({".html", ".js", ".css", ".svg"})


class RequestCount:
    """Takes part in every answer of an application, WebSocket upgrades and streams too."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def install(self, app: web.Application) -> None:
        """Count from now on. The application must have its routes."""
        routes = {_name(resource) for resource in app.router.resources()}
        self._counts = self._metrics.count_http({*routes, NOWHERE})
        app.on_response_prepare.append(self._count)

    async def _count(self, request: web.Request, response: web.StreamResponse) -> None:
        route = request.match_info.route.resource
        name = NOWHERE if route is None else _name(route)
        self._counts[name, f"{response.status // 100}xx"].inc()


def _name(resource: web.AbstractResource) -> str:
    path = resource.canonical
    return PAGE if path == "/" or PurePosixPath(path).suffix in _PAGE_SUFFIXES else path
