"""The web page, and the browser SDK that pages of others may import: files of the package.

This module must not know what they do.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from importlib.resources import files
from pathlib import Path

from aiohttp import web

PAGE_FOLDER = Path(str(files("duologue"))) / "web_demo"

SDK_FOLDER = PAGE_FOLDER / "sdk"
_TYPES = {
    ".html": "text/html",
    ".js": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
    # Type declarations; tables of the system call it a video.
    ".ts": "text/plain",
}
_FILES = tuple(sorted(path for path in PAGE_FOLDER.rglob("*") if path.suffix in _TYPES))
"""Looked up once, when the server is loaded: the loop has no time for folders."""

_HEADERS = {
    # The page is small and changes with the server: ask every time, answer 304.
    "Cache-Control": "no-cache",
    "Permissions-Policy": "microphone=(self)",
    "X-Content-Type-Options": "nosniff",
}
_SDK_HEADERS = {
    # It is the same for everybody and opens nothing: which pages may call is asked at the call.
    "Access-Control-Allow-Origin": "*",
    "Cross-Origin-Resource-Policy": "cross-origin",
}


def add_page(router: web.UrlDispatcher) -> None:
    """Serve the page at ``/`` and its files beside it, each by its name: nothing else exists."""
    router.add_get("/", _sender(PAGE_FOLDER / "index.html"))
    for path in _FILES:
        router.add_get(f"/{path.relative_to(PAGE_FOLDER).as_posix()}", _sender(path))


def _sender(path: Path) -> Callable[[web.Request], Awaitable[web.FileResponse]]:
    headers = {**_HEADERS, "Content-Type": f"{_TYPES[path.suffix]}; charset=utf-8"}
    if SDK_FOLDER in path.parents:
        headers |= _SDK_HEADERS

    async def send(_request: web.Request) -> web.FileResponse:
        return web.FileResponse(path, headers=headers)

    return send
