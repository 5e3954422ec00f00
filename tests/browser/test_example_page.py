"""The page of docs/browser.md, exactly as it stands there, on an origin of its own."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web

import duologue
from duologue.app import running_app
from tests.browser.conftest import Browse
from tests.browser.voice import Pcm
from tests.fakes.talking_gateway import SHORT_LINE, talking_settings
from tests.patience import PATIENCE_S

GUIDE = (Path(duologue.__file__).parents[1] / "docs" / "browser.md").read_text()
(PAGE,) = re.findall(r"```html\n(.*?)```", GUIDE, re.DOTALL)
(GATEWAY,) = re.findall(r'from "http://(localhost:\d+)/sdk/', PAGE)
(ORIGIN,) = re.findall(r"ALLOWED_ORIGINS='\[\"(.*?)\"\]'", GUIDE)


@pytest.fixture
async def server() -> AsyncIterator[str]:
    """Serve the page as any web server does, and yield where."""

    async def send(_request: web.Request) -> web.Response:
        return web.Response(text=PAGE, content_type="text/html")

    app = web.Application()
    app.router.add_get("/", send)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


async def test_it_talks_with_the_gateway_from_another_origin(
    browse: Browse, server: str, tmp_path: Path, question: tuple[Pcm, ...]
) -> None:
    settings = talking_settings(tmp_path, SHORT_LINE)
    gateway = settings.gateway.model_copy(update={"allowed_origins": (ORIGIN,)})
    async with running_app(settings.model_copy(update={"gateway": gateway})) as app:
        port = app.url.rpartition(":")[2]
        page_at = ORIGIN.removeprefix("http://")
        rules = f"MAP {GATEWAY} 127.0.0.1:{port}, MAP {page_at} {server}"
        flags = (f"--host-resolver-rules={rules}",)
        async with browse(question, flags=flags, url=f"{ORIGIN}/", scripts=()) as page:
            assert await page.evaluate("location.origin") == ORIGIN
            await page.click("#talk")
            await page.until("news.textContent === 'live'")
            await page.until("news.textContent.startsWith('It hears')")
            await page.until("news.textContent.startsWith('It speaks')")
            await page.until(f"words.innerText.includes('duologue: {SHORT_LINE}')")
            await page.click("#hangUp")
            await page.until("news.textContent === 'ended'")
            assert [error for error in page.errors if "favicon" not in error] == []
        await app.sessions.wait_empty(PATIENCE_S)
        assert len(app.sessions) == 0


async def test_a_page_that_is_not_allowed_is_told_what_to_change(
    browse: Browse, server: str, tmp_path: Path, question: tuple[Pcm, ...]
) -> None:
    async with running_app(talking_settings(tmp_path, SHORT_LINE)) as app:
        port = app.url.rpartition(":")[2]
        page_at = ORIGIN.removeprefix("http://")
        rules = f"MAP {GATEWAY} 127.0.0.1:{port}, MAP {page_at} {server}"
        flags = (f"--host-resolver-rules={rules}",)
        async with browse(question, flags=flags, url=f"{ORIGIN}/", scripts=()) as page:
            await page.click("#talk")
            await page.until("news.textContent.includes('allowed_origins')")


def test_it_is_as_short_as_it_claims() -> None:
    assert len(PAGE.splitlines()) <= 26
