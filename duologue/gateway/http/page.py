"""The web page: static files that ship in the package.

This module must not know what the page does.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from importlib.resources import files
from pathlib import Path

from aiohttp import web

PAGE_FOLDER = Path(str(files("duologue"))) / "web_demo"

_SERVED = frozenset({".html", ".js", ".css", ".svg"})
_FILES = tuple(sorted(path for path in PAGE_FOLDER.rglob("*") if path.suffix in _SERVED))
"""Looked up once, when the server is loaded: the loop has no time for folders."""

_HEADERS = {
    # The page is small and changes with the server: ask every time, answer 304.
    "Cache-Control": "no-cache",
    "Permissions-Policy": "microphone=(self)",
    "X-Content-Type-Options": "nosniff",
}


def add_page(router: web.UrlDispatcher) -> None:
    """Serve the page at ``/`` and its files beside it, each by its name: nothing else exists."""
    router.add_get("/", _sender(PAGE_FOLDER / "index.html"))
    for path in _FILES:
        router.add_get(f"/{path.relative_to(PAGE_FOLDER).as_posix()}", _sender(path))


def _sender(path: Path) -> Callable[[web.Request], Awaitable[web.FileResponse]]:
    async def send(_request: web.Request) -> web.FileResponse:
        return web.FileResponse(path, headers=_HEADERS)

    return send
