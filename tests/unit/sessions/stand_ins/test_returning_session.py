"""Stock clients that come back by the address they connect to."""

from __future__ import annotations

from typing import Any

import pytest

from duologue.protocol.session_patch import SessionPatch
from duologue.sessions.owners import ANYBODY
from duologue.sessions.settings import SessionSettings
from duologue.sessions.stand_ins.returning_session import ReturningSession
from tests.fakes.call import FakeCall, FakeConnection
from tests.fakes.plugin import FakePlugin
from tests.patience import PATIENCE_S
from tests.unit.gateway.raw_websocket import UPGRADE, connected
from tests.unit.gateway.small_server import SmallServer, small_server

PATH = "/v1/realtime?resumable=1"


def address(created: dict[str, Any], token: str | None = None) -> str:
    session_id = created["session"]["id"]
    return f"/v1/realtime?session_id={session_id}&resume_token={token or created['resume_token']}"


async def lost(server: SmallServer) -> dict[str, Any]:
    """Have a call, lose it; what it was told first."""
    async with connected(server.port) as peer:
        await peer.upgrade(PATH)
        created = await peer.event()
        peer.send_event({"type": "session.update", "session": {"instructions": "Remember me."}})
        assert (await peer.event())["type"] == "session.updated"
        assert isinstance(created, dict)
    await server.realtime.wait_closed(PATIENCE_S)
    assert server.metrics.sessions_detached.value == 1
    return created


async def test_a_stock_client_goes_on_with_its_session() -> None:
    async with small_server() as server:
        created = await lost(server)
        async with connected(server.port) as peer:
            await peer.upgrade(address(created))
            again = await peer.event()
            assert again["type"] == "session.created"
            assert again["session"]["id"] == created["session"]["id"]
            assert again["session"]["instructions"] == "Remember me."
            assert (again["attachment_generation"], again["event_id"]) == (2, "event_3")
            assert again["resume_token"] != created["resume_token"]
            peer.send_event({"type": "input_audio_buffer.clear"})
            assert (await peer.event())["type"] == "input_audio_buffer.cleared"
            assert server.metrics.sessions_detached.value == 0


async def test_who_did_not_ask_gets_no_token_and_loses_the_session() -> None:
    async with small_server() as server, connected(server.port) as peer:
        await peer.upgrade("/v1/realtime")
        assert "resume_token" not in await peer.event()
        peer.writer.transport.abort()
        await server.realtime.wait_closed(PATIENCE_S)
        assert len(server.sessions) == 0


async def test_refusals_come_before_the_upgrade() -> None:
    async with small_server() as server:
        created = await lost(server)
        for path, status, code in (
            (address(created, "wrong"), 403, "invalid_resume_token"),
            (address({"session": {"id": "sess_0"}}, "wrong"), 403, "invalid_resume_token"),
        ):
            async with connected(server.port) as peer:
                answer = await peer.ask(path, UPGRADE)
                assert (answer.status, answer.json["error"]["code"]) == (status, code)


async def test_the_connection_that_is_replaced_is_closed() -> None:
    async with (
        small_server() as server,
        connected(server.port) as old,
        connected(server.port) as new,
    ):
        await old.upgrade(PATH)
        created = await old.event()
        await new.upgrade(address(created))
        assert (await new.event())["attachment_generation"] == 2
        goodbye = await old.goodbye()
        assert goodbye.code == 4001
        old.send_event({"type": "input_audio_buffer.clear"})
        new.send_event({"type": "input_audio_buffer.commit"})
        assert (await new.event())["error"]["code"] == "input_audio_buffer_commit_empty"


async def test_one_may_come_back_to_a_full_server() -> None:
    async with small_server(sessions=SessionSettings(max_sessions=1)) as server:
        created = await lost(server)
        async with connected(server.port) as peer:
            answer = await peer.ask("/v1/realtime", UPGRADE)
            assert answer.status == 503
        async with connected(server.port) as peer:
            await peer.upgrade(address(created))
            assert (await peer.event())["type"] == "session.created"


async def test_a_duplex_session_is_resumed_by_its_own_message() -> None:
    async with small_server() as server, connected(server.port) as peer:
        await peer.upgrade("/v1/duplex?autostart=0")
        peer.send_event({"type": "session.update", "session": {}})
        created = await peer.event()
        async with connected(server.port) as other:
            answer = await other.ask(address(created), UPGRADE)
            assert answer.json["error"]["code"] == "unsupported_session_resume"


def test_of_two_that_come_back_at_once_one_is_let_go() -> None:
    call = FakeCall(FakePlugin(), patch=SessionPatch(), resumable=True)
    token = call.client.token
    ports = [ReturningSession(call.manager.claim(call.session.id, token, ANYBODY)) for _ in "ab"]
    connections = [FakeConnection(call.session, call.client) for _ in "ab"]
    for port, connection in zip(ports, connections, strict=True):
        port.attach(connection)
    assert connections[1].ended == "session_resume_conflict"
    assert ports[1].pull(100).deliveries == []
    assert connections[0].ended is None


@pytest.mark.parametrize("reason", ["client_gone"])
def test_an_upgrade_that_fails_changes_nothing(reason: str) -> None:
    call = FakeCall(FakePlugin(), patch=SessionPatch(), resumable=True)
    ReturningSession(call.manager.claim(call.session.id, call.client.token, ANYBODY)).close(reason)
    assert call.client.ended is None
    assert len(call.manager) == 1
