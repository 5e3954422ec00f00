from __future__ import annotations

from typing import Any

import pytest

from duologue.gateway.settings import GatewaySettings
from duologue.sessions.settings import SessionSettings
from duologue.sessions.stand_ins.stand_in import MAX_WAITING_ERRORS
from tests.patience import PATIENCE_S
from tests.unit.gateway.raw_websocket import TEXT, UPGRADE, connected
from tests.unit.gateway.small_server import small_server

PATH = "/v1/realtime?duplex=1&model=echo&autostart=0"
UPDATE = {"type": "session.update", "event_id": "e1", "session": {"instructions": "Hi."}}


async def test_nothing_is_said_before_the_client_describes_its_session() -> None:
    async with small_server() as server, connected(server.port) as peer:
        await peer.upgrade(PATH)
        assert len(server.sessions) == 0
        peer.send_event(UPDATE)
        created, updated = await peer.until("session.updated")
        assert created["type"] == "session.created"
        assert [created["server_event_seq"], updated["server_event_seq"]] == [1, 2]
        assert created["session"]["instructions"] == updated["session"]["instructions"] == "Hi."
        assert len(server.sessions) == 1
        peer.send_event({"type": "session.close", "reason": "enough"})
        closed = (await peer.until("session.closed"))[-1]
        assert closed["reason"] == "enough"
        assert (await peer.goodbye()).code == 1000
    assert len(server.wheel) == 0


@pytest.mark.parametrize("path", ["/v1/duplex?autostart=0", "/v1/duplex?model=other&autostart=0"])
async def test_the_description_may_name_the_model(path: str) -> None:
    async with small_server() as server, connected(server.port) as peer:
        await peer.upgrade(path)
        peer.send_event({"type": "session.update", "session": {"model": "other"}})
        assert (await peer.event())["session"]["model"] == "other"


async def test_the_alias_of_a_stock_client_is_a_plain_connection() -> None:
    async with small_server() as server, connected(server.port) as peer:
        await peer.upgrade("/v1/duplex?duplex=1&model=echo")
        created = await peer.event()
        assert created["type"] == "session.created"
        assert "server_event_seq" not in created
        assert "capabilities" not in created["session"]


@pytest.mark.parametrize(
    ("first", "code"),
    [
        ({"type": "input_audio_buffer.append", "audio": "AAAA"}, "invalid_request"),
        ({"type": "session.heartbeat"}, "invalid_request"),
        (
            {"type": "session.resume", "session_id": "s", "resume_token": "t"},
            "invalid_resume_token",
        ),
        ({"type": "session.update", "session": {"voice": "nobody"}}, "invalid_value"),
        ({"type": "session.update", "session": {"ref_audio": "data:audio/wav,"}}, "unsupported"),
        ({"type": "hello"}, "unknown_event_type"),
    ],
)
async def test_what_is_no_description_is_refused_and_another_may_follow(
    first: dict[str, Any], code: str
) -> None:
    async with small_server() as server, connected(server.port) as peer:
        await peer.upgrade(PATH)
        peer.send_event(first | {"event_id": "e0"})
        error = await peer.event()
        assert (error["error"]["code"], error["error"]["event_id"]) == (code, "e0")
        assert "server_event_seq" not in error
        assert len(server.sessions) == 0
        peer.send_event(UPDATE)
        assert (await peer.event())["type"] == "session.created"


async def test_who_describes_no_session_is_let_go_in_time() -> None:
    settings = GatewaySettings(first_message_timeout_s=0.05)
    async with small_server(settings) as server, connected(server.port) as peer:
        await peer.upgrade(PATH)
        assert (await peer.event())["error"]["code"] == "config_timeout"
        assert (await peer.goodbye()).code == 1008


async def test_a_place_is_kept_until_the_session_is_described_and_given_back() -> None:
    sessions = SessionSettings(max_sessions=1, disconnect_grace_s=0)
    async with small_server(sessions=sessions) as server:
        async with connected(server.port) as first, connected(server.port) as second:
            await first.upgrade(PATH)
            answer = await second.ask(PATH, UPGRADE)
            assert (answer.status, answer.json["error"]["code"]) == (503, "server_full")
            first.send_event({"type": "session.update", "session": {"voice": "nobody"}})
            assert (await first.event())["type"] == "error"
            first.send_event(UPDATE)
            assert (await first.event())["type"] == "session.created"
        await server.realtime.wait_closed(PATIENCE_S)
        async with connected(server.port) as third:
            await third.upgrade(PATH)
            third.close()
            await third.goodbye()
        await server.realtime.wait_closed(PATIENCE_S)
        async with connected(server.port) as fourth:
            await fourth.upgrade("/v1/realtime")


async def test_a_client_that_closes_before_it_begins_may_go() -> None:
    async with small_server() as server, connected(server.port) as peer:
        await peer.upgrade(PATH)
        peer.send_event({"type": "close"})
        assert (await peer.goodbye()).code == 1000


async def test_a_server_that_goes_down_does_not_wait_for_descriptions() -> None:
    async with small_server() as server, connected(server.port) as peer:
        await peer.upgrade(PATH)
        server.sessions.close_all("server_shutting_down")
        peer.send_event(UPDATE)
        error = await peer.event()
        assert error["error"]["code"] == "server_shutting_down"
        assert (await peer.goodbye()).code == 1001


async def test_nobody_makes_mistakes_for_ever_without_reading() -> None:
    async with small_server() as server, connected(server.port, is_deaf=True) as peer:
        await peer.upgrade(PATH)
        for _ in range(200 * MAX_WAITING_ERRORS):
            peer.send(TEXT, b"x" * 300)
            await peer.writer.drain()
        peer.go_on_reading()
        assert (await peer.goodbye()).code == 1013
