from __future__ import annotations

import pytest

from duologue.gateway.http.page import PAGE_FOLDER
from tests.unit.gateway.raw_websocket import connected
from tests.unit.gateway.small_server import small_server


@pytest.mark.parametrize(
    ("path", "kind"),
    [("/", "text/html"), ("/index.html", "text/html"), ("/main.js", "text/javascript")],
)
async def test_the_page_and_its_files_are_served_and_asked_for_each_time(
    path: str, kind: str
) -> None:
    async with small_server() as server, connected(server.port) as peer:
        answer = await peer.ask(path)
        assert answer.status == 200
        assert answer.headers["Content-Type"] == f"{kind}; charset=utf-8"
        assert answer.headers["Cache-Control"] == "no-cache"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        again = await peer.ask(path, {"If-None-Match": answer.headers["Etag"]})
        assert again.status == 304


async def test_every_module_that_the_page_may_load_is_there() -> None:
    modules = [path.relative_to(PAGE_FOLDER).as_posix() for path in PAGE_FOLDER.rglob("*.js")]
    assert "sdk/audio/capture-worklet.js" in modules
    async with small_server() as server, connected(server.port) as peer:
        for module in modules:
            assert (await peer.ask(f"/{module}")).status == 200, module


@pytest.mark.parametrize(
    ("path", "kind"),
    [("/sdk/duologue.js", "text/javascript"), ("/sdk/duologue.d.ts", "text/plain")],
)
async def test_the_sdk_may_be_imported_by_any_page(path: str, kind: str) -> None:
    async with small_server() as server, connected(server.port) as peer:
        answer = await peer.ask(path, {"Origin": "https://elsewhere.example"})
        assert answer.status == 200
        assert answer.headers["Access-Control-Allow-Origin"] == "*"
        assert answer.headers["Cross-Origin-Resource-Policy"] == "cross-origin"
        assert answer.headers["Content-Type"] == f"{kind}; charset=utf-8"
        assert answer.headers["Cache-Control"] == "no-cache"


async def test_the_page_itself_is_nobody_elses() -> None:
    async with small_server() as server, connected(server.port) as peer:
        answer = await peer.ask("/main.js", {"Origin": "https://elsewhere.example"})
        assert "Access-Control-Allow-Origin" not in answer.headers


@pytest.mark.parametrize("path", ["/package.json", "/__init__.py", "/sdk", "/sdk/", "/.."])
async def test_nothing_else_of_the_folder_is_served(path: str) -> None:
    async with small_server() as server, connected(server.port) as peer:
        assert (await peer.ask(path)).status == 404
