"""The dashboard of open sessions in a real browser, on a real server."""

from __future__ import annotations

import json
from pathlib import Path

import aiohttp
from pydantic import SecretStr

from duologue.app import running_app
from tests.browser import chromium
from tests.fakes.small_gateway import small_settings

ADMIN_KEY = "key-of-who-runs-it"
ROWS = "[...document.querySelectorAll('#sessions tbody tr')]"


def entered(key: str) -> str:
    """Script that types a key and sends the form."""
    return (
        f"document.getElementById('key').value = '{key}';"
        "document.getElementById('entry').requestSubmit()"
    )


async def test_the_dashboard_wants_the_key_and_then_follows_the_calls(tmp_path: Path) -> None:
    settings = small_settings()
    gateway = settings.gateway.model_copy(update={"admin_key": SecretStr(ADMIN_KEY)})
    async with (
        running_app(settings.model_copy(update={"gateway": gateway})) as app,
        aiohttp.ClientSession() as http,
        chromium.new_page(tmp_path / "profile", (), ()) as page,
    ):
        await page.open(f"{app.url}/debug")
        await page.until("document.getElementById('entry').checkVisibility()")
        assert await page.evaluate(f"{ROWS}.length") == 0

        await page.evaluate(entered("not-the-key"))
        await page.until("document.getElementById('summary').hasAttribute('data-problem')")
        said = await page.evaluate("document.getElementById('summary').textContent")
        assert "not the admin key" in said
        assert await page.evaluate("sessionStorage.length") == 0

        async with http.ws_connect(f"{app.url}/v1/realtime?model=echo") as call:
            session = json.loads(await call.receive_str())["session"]["id"]
            await page.evaluate(entered(ADMIN_KEY))
            await page.until(f"{ROWS}.some((row) => row.dataset.id === '{session}')")
            assert (
                await page.evaluate("document.getElementById('entry').checkVisibility()") is False
            )
            shown = await page.evaluate(f"{ROWS}[0].innerText")
            assert "websocket, realtime" in shown
            assert "idle" in shown
            await call.close()
        await page.until(f"{ROWS}.length === 0")
        assert "0 sessions open" in await page.evaluate(
            "document.getElementById('summary').textContent"
        )
        # The refusal of the wrong key is the browser's own line, and the only one.
        assert [error for error in page.errors if "401" not in str(error)] == []

        await page.evaluate("document.getElementById('leave').click()")
        assert await page.evaluate("sessionStorage.length") == 0
        assert await page.evaluate("document.getElementById('entry').checkVisibility()") is True
