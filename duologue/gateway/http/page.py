"""The web page: static files that ship in the package.

This module must not know what the page does.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from aiohttp import web

PAGE_FOLDER = Path(str(files("duologue"))) / "web_demo"

_HEADERS = {
    # The page is small and changes with the server: ask every time, answer 304.
    "Cache-Control": "no-cache",
    "Permissions-Policy": "microphone=(self)",
    "X-Content-Type-Options": "nosniff",
}


async def index(_request: web.Request) -> web.FileResponse:
    """The page itself."""
    return web.FileResponse(PAGE_FOLDER / "index.html", headers=_HEADERS)


def add_page(router: web.UrlDispatcher) -> None:
    """Serve the page at ``/`` and its files beside it."""
    router.add_get("/", index)
    router.add_static("/", PAGE_FOLDER, show_index=False)
