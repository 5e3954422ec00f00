"""Who comes in and who does not: browsers' keys, full servers, refusals that tell no secrets."""

from __future__ import annotations

import asyncio
import io
import json
from contextlib import AsyncExitStack
from pathlib import Path
from time import perf_counter
from typing import Any

import aiohttp
import pytest
from structlog.testing import capture_logs

from duologue.app import running_app
from duologue.duplex_plugins.echo import EchoPlugin
from duologue.gateway.auth import Caller
from duologue.gateway.client_secrets import BoundSession
from duologue.gateway.settings import GatewaySettings
from duologue.jobs.settings import JobSettings
from duologue.sessions.owners import Owner
from duologue.sessions.settings import SessionSettings
from duologue.telemetry import configure_logging
from tests.fakes.media_gateway import media_settings
from tests.fakes.small_gateway import small_settings
from tests.patience import PATIENCE_S
from tests.unit.gateway.raw_websocket import TEXT, UPGRADE, RawWebSocket, Response, connected
from tests.unit.gateway.small_server import SmallServer, small_server

KEY = "sesame-open-1234"
CANARY = "sk-canary-9f8e7d6c5b"
PATH = "/v1/realtime"
SETTINGS = GatewaySettings(api_keys=(KEY,), allowed_origins=("https://app.example",))


def as_browser(key: str, **more: str) -> dict[str, str]:
    """What a browser can send: a key in a subprotocol, and no header but its origin."""
    protocols = f"realtime, openai-insecure-api-key.{key}"
    return UPGRADE | {"Sec-WebSocket-Protocol": protocols, "Origin": "https://app.example"} | more


async def knock(server: SmallServer, headers: dict[str, str], path: str = PATH) -> Response:
    async with connected(server.port) as peer:
        return await peer.ask(path, headers)


def secret(server: SmallServer, lifetime_s: int, owner: str = "key-1") -> str:
    return server.access.issue(Caller(Owner(owner)), BoundSession(), lifetime_s)[0]


def code(answer: Response) -> str:
    return str(answer.json["error"]["code"])


# C70 Browser auth


async def test_c70_a_browsers_key_opens_and_only_realtime_is_selected() -> None:
    async with small_server(SETTINGS) as server:
        for key in (KEY, secret(server, 60)):
            answer = await knock(server, as_browser(key))
            assert answer.status == 101
            assert answer.headers["Sec-WebSocket-Protocol"] == "realtime"
            assert key not in str(answer.headers)


async def test_c70_a_header_wins_over_a_subprotocol_whichever_is_right() -> None:
    async with small_server(SETTINGS) as server:
        right = as_browser("wrong", Authorization=f"Bearer {KEY}")
        assert (await knock(server, right)).status == 101
        wrong = await knock(server, as_browser(KEY, Authorization="Bearer wrong"))
        assert (wrong.status, code(wrong)) == (401, "invalid_api_key")


async def test_c70_wrong_keys_and_expired_secrets_are_refused_before_the_upgrade() -> None:
    async with small_server(SETTINGS) as server:
        wrong = await knock(server, as_browser("wrong"))
        assert (wrong.status, code(wrong)) == (401, "invalid_api_key")
        assert set(wrong.json["error"]) >= {"message", "type", "param", "code"}
        expired = await knock(server, as_browser(secret(server, -1)))
        assert (expired.status, code(expired)) == (401, "client_secret_expired")
        assert len(server.sessions) == 0


async def test_c70_a_key_in_the_address_is_refused_unless_it_is_enabled() -> None:
    path = f"{PATH}?api_key={KEY}"
    async with small_server(SETTINGS) as server:
        refused = await knock(server, UPGRADE, path)
        assert (refused.status, code(refused)) == (401, "invalid_api_key")
        assert KEY not in refused.body.decode()
    enabled = SETTINGS.model_copy(update={"query_keys": True})
    async with small_server(enabled) as server:
        assert (await knock(server, UPGRADE, path)).status == 101
        # The duplex client sends no header at all.
        duplex = f"/v1/duplex?model=m&api_key={KEY}"
        assert (await knock(server, UPGRADE, duplex)).status == 101


OPEN = {"/health", "/ready", "/metrics", "/openapi.json"}
"""How the server is, and what it offers; no call, and nothing of anybody."""


async def test_c70_every_route_needs_a_key_but_those_that_tell_how_the_server_is(
    tmp_path: Path,
) -> None:
    settings = media_settings(jobs=JobSettings(folder=tmp_path))
    async with running_app(settings) as app, aiohttp.ClientSession() as client:
        url = f"http://127.0.0.1:{app.url.rpartition(':')[2]}"
        sockets = [("GET", path) for path in (PATH, "/v1/duplex")]
        routes = {(method, path) for method, path in (*app.paths, *sockets) if path not in OPEN}
        assert {path for _, path in routes} > {
            "/v1/videos/{video_id}",
            "/v1/realtime/video",
            "/v1/realtime/robot/openpi",
        }
        for method, path in routes:
            place = url + path.replace("{", "").replace("}", "")
            for headers in ({}, {"Authorization": "Bearer wrong"}, UPGRADE):
                async with client.request(method, place, headers=headers, data=b"{}") as answer:
                    assert answer.status == 401, (method, path, headers)


# C50 The one too many


async def test_c50_one_too_many_is_told_when_to_come_back_and_the_others_talk_on() -> None:
    limit = 5
    async with (
        small_server(sessions=SessionSettings(max_sessions=limit)) as server,
        AsyncExitStack() as calls,
    ):
        peers = [await calls.enter_async_context(connected(server.port)) for _ in range(limit)]
        await asyncio.gather(*(peer.upgrade(PATH) for peer in peers))
        took_s = []
        for attempt in range(3):
            asked_at = perf_counter()
            refused = await knock(server, UPGRADE)
            took_s.append(perf_counter() - asked_at)
            assert (refused.status, code(refused)) == (503, "server_full")
            assert int(refused.headers["Retry-After"]) > 0
            assert len(server.sessions) == limit
            await talk_on(peers[attempt])
        # A busy machine may hold up one or the other.
        assert min(took_s) < 0.1
        for peer in peers:
            peer.close()
            await peer.goodbye()
        await server.realtime.wait_closed(PATIENCE_S)
        assert (await knock(server, UPGRADE)).status == 101


async def talk_on(peer: RawWebSocket) -> None:
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi."}]}
    peer.send_event({"type": "conversation.item.create", "item": item})
    await peer.until("conversation.item.done")


# C57 Refusals


async def test_c57_refusals_have_codes_of_their_own_and_tell_strangers_nothing() -> None:
    async with small_server(SETTINGS) as server, small_server(SETTINGS) as other:
        good = secret(server, 60)
        presented = {
            "invalid_api_key": ["wrong", KEY + "x", secret(other, 60), good[:-4] + "AAAA"],
            "client_secret_expired": [secret(server, -100)],
        }
        told = set()
        for expected, keys in presented.items():
            for key in keys:
                answer = await knock(server, UPGRADE | {"Authorization": f"Bearer {key}"})
                assert (answer.status, code(answer)) == (401, expected)
                if expected == "invalid_api_key" and not key.startswith("ek_"):
                    told.add(answer.json["error"]["message"])
        # A near miss reads as any other.
        assert len(told) == 1
        # A secret of a key that there never was, or is no more, is told from no other bad one.
        answer = await knock(server, as_browser(secret(server, 60, owner="key-9")))
        assert (answer.status, code(answer)) == (401, "invalid_api_key")
        asked = await knock(server, {"Authorization": f"Bearer {good}"}, "/v1/models")
        assert (asked.status, code(asked)) == (403, "api_key_not_allowed")
        assert len(server.sessions) == 0


# Nothing secret anywhere


class BrokenPlugin(EchoPlugin):
    def step(self, state: Any, item: Any) -> Any:
        raise ValueError("broken")


PLACES: list[dict[str, str]] = [
    {"Authorization": f"Bearer {CANARY}"},
    {"api-key": CANARY},
    {"Sec-WebSocket-Protocol": f"realtime, openai-insecure-api-key.{CANARY}"},
    {"X-Twilio-Signature": CANARY},
    {"Authorization": f"Basic {CANARY}"},
]


@pytest.mark.parametrize("is_right", [True, False])
async def test_c70_no_route_logs_or_repeats_a_key_at_any_level(is_right: bool) -> None:
    stream = io.StringIO()
    configure_logging(level="debug", log_format="json", stream=stream)
    settings = small_settings(api_keys=(CANARY if is_right else KEY,))
    async with running_app(settings) as app, aiohttp.ClientSession() as client:
        paths = [("GET", f"{path}?api_key={CANARY}") for path in (PATH, "/v1/duplex", "/x")]
        paths += [("GET", "/v1/telephony/twilio/stream"), ("POST", PATH), ("OPTIONS", PATH)]
        paths += [(method, path.replace("{", "").replace("}", "")) for method, path in app.paths]
        assert len(paths) > 12
        for method, path in paths:
            for place in PLACES:
                for body in (None, b"{", json.dumps({"model": "m", "input": "x"}).encode()):
                    headers = {**place, "Content-Type": "application/json"}
                    async with client.request(
                        method, app.url + path, headers=headers, data=body
                    ) as answer:
                        text = await answer.text(errors="replace")
                        assert CANARY not in text + str(answer.headers), (method, path, place)
        async with (
            client.ws_connect(
                f"{app.url}{PATH}", protocols=("realtime", f"openai-insecure-api-key.{CANARY}")
            )
            if is_right
            else client.get(app.url) as _
        ):
            pass
    assert CANARY not in stream.getvalue()
    assert bool(stream.getvalue())


async def test_c70_a_session_that_crashes_keeps_no_key_in_its_recording() -> None:
    settings = GatewaySettings(api_keys=(CANARY,))
    async with (
        small_server(settings, plugins={"broken": BrokenPlugin()}) as server,
        connected(server.port) as peer,
    ):
        with capture_logs() as logs:
            await peer.upgrade(PATH, Authorization=f"Bearer {CANARY}")
            peer.send(TEXT, b'{"type":"input_audio_buffer.append","audio":"AAAA"}')
            await peer.goodbye()
        (flight,) = server.flights
        assert CANARY not in repr(flight) + repr(logs)
        page = await knock(server, {}, "/metrics")
        assert CANARY not in page.body.decode()
        assert 'key="key-1"' in page.body.decode()
