"""What who runs the server may see, and nobody else."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest
from pydantic import SecretStr

from duologue.app import App, running_app
from tests.fakes.small_gateway import API_KEY, small_settings

ADMIN_KEY = "key-of-who-runs-it"
SECRET = "the treasure lies beneath the old oak"


@asynccontextmanager
async def server(
    admin_key: str | None = ADMIN_KEY,
) -> AsyncIterator[tuple[App, aiohttp.ClientSession]]:
    settings = small_settings(api_keys=(API_KEY,))
    key = None if admin_key is None else SecretStr(admin_key)
    gateway = settings.gateway.model_copy(update={"admin_key": key})
    async with (
        running_app(settings.model_copy(update={"gateway": gateway})) as app,
        aiohttp.ClientSession() as http,
    ):
        yield app, http


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


async def test_open_sessions_are_shown_to_the_admin_key_without_content_or_keys() -> None:
    async with (
        server() as (app, http),
        http.ws_connect(f"{app.url}/v1/realtime?model=echo", headers=bearer(API_KEY)) as call,
    ):
        session_id = json.loads(await call.receive_str())["session"]["id"]
        await call.send_json(
            {"type": "session.update", "session": {"type": "realtime", "instructions": SECRET}}
        )
        assert json.loads(await call.receive_str())["type"] == "session.updated"
        async with http.get(f"{app.url}/debug/sessions", headers=bearer(ADMIN_KEY)) as answer:
            text = await answer.text()
        page = json.loads(text)
    assert answer.headers["Cache-Control"] == "no-store"
    (seen,) = page["sessions"]
    assert seen["id"] == session_id
    assert (seen["transport"], seen["dialect"], seen["key"]) == ("websocket", "realtime", "key-1")
    assert (seen["state"], seen["attached"]) == ("idle", True)
    assert page["workers_ready"] == page["workers"]
    for private in (SECRET, API_KEY, ADMIN_KEY):
        assert private not in text


@pytest.mark.parametrize(
    "headers", [{}, bearer(API_KEY), bearer("wrong"), bearer("\u00e4")], ids=str
)
async def test_others_are_refused_an_api_key_too(headers: dict[str, str]) -> None:
    async with server() as (app, http):
        async with http.get(f"{app.url}/debug/sessions", headers=headers) as answer:
            body = await answer.json()
        assert answer.status == 401
        assert "admin key" in body["error"]["message"]


async def test_pages_of_others_may_not_ask() -> None:
    async with server() as (app, http):
        headers = {**bearer(ADMIN_KEY), "Origin": "https://elsewhere.example"}
        async with http.get(f"{app.url}/debug/sessions", headers=headers) as answer:
            assert answer.status == 403


async def test_the_page_holds_nothing_and_may_load_nothing_from_elsewhere() -> None:
    async with server() as (app, http):
        for path in ("/debug", "/debug/dashboard.js", "/debug/dashboard.css"):
            async with http.get(f"{app.url}{path}") as answer:
                assert answer.status == 200
                assert "default-src 'none'" in answer.headers["Content-Security-Policy"]


async def test_without_an_admin_key_there_is_nothing() -> None:
    async with server(admin_key=None) as (app, http):
        for path in ("/debug", "/debug/sessions", "/debug/dashboard.js"):
            async with http.get(f"{app.url}{path}", headers=bearer(API_KEY)) as answer:
                assert answer.status == 404
