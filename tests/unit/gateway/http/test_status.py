from __future__ import annotations

import pytest

from duologue.gateway.admission import Workers
from duologue.sessions.settings import SessionSettings
from tests.unit.gateway.raw_websocket import connected
from tests.unit.gateway.small_server import small_server


async def test_a_server_that_loads_is_alive_and_not_ready_and_says_how_far_it_is() -> None:
    async with small_server(is_loaded=False) as server, connected(server.port) as peer:
        server.workers = Workers(ready=1, total=3, every_stage=False)
        assert (await peer.ask("/health")).json == {"status": "ok"}
        answer = await peer.ask("/ready")
        assert answer.status == 503
        assert answer.headers["Retry-After"] == "2"
        assert answer.json["error"]["code"] == "server_not_ready"
        assert answer.json["status"] == "not_ready"
        assert (answer.json["workers_ready"], answer.json["workers"]) == (1, 3)
        server.admission.open()
        server.workers = Workers(ready=3, total=3, every_stage=True)
        answer = await peer.ask("/ready")
        assert answer.status == 200
        assert answer.json == {
            "status": "ready",
            "sessions": 0,
            "workers_ready": 3,
            "workers": 3,
        }


async def test_a_full_server_is_alive_and_not_ready() -> None:
    sessions = SessionSettings(max_sessions=1)
    async with small_server(sessions=sessions) as server, connected(server.port) as caller:
        await caller.upgrade("/v1/realtime")
        async with connected(server.port) as peer:
            assert (await peer.ask("/health")).status == 200
            answer = await peer.ask("/ready")
            assert answer.status == 503
            assert answer.json["error"]["code"] == "server_full"
            assert answer.json["sessions"] == 1


@pytest.mark.parametrize(
    ("accept", "kind"),
    [("*/*", "text/plain"), ("application/openmetrics-text", "application/openmetrics-text")],
)
async def test_figures_come_in_the_format_that_is_asked_for(accept: str, kind: str) -> None:
    async with small_server() as server, connected(server.port) as peer:
        answer = await peer.ask("/metrics", {"Accept": accept})
        assert answer.status == 200
        assert answer.headers["Content-Type"].startswith(kind)
        assert b"duologue_sessions_active 0.0" in answer.body
