"""C51 and C58: sockets that end at every phase; the session waits, or nothing is left of it."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from duologue.gateway.settings import GatewaySettings
from duologue.sessions.settings import SessionSettings
from tests.patience import PATIENCE_S
from tests.unit.gateway.raw_websocket import TEXT, RawWebSocket, connected
from tests.unit.gateway.small_server import SmallServer, small_server

PATH = "/v1/duplex?model=echo&autostart=0"
RESUMING = "/v1/duplex?resume=1"
SOUND = base64.b64encode(b"\x10\x00" * 2400).decode()
APPEND = {"type": "input_audio_buffer.append", "audio": SOUND, "start_sample": 0}
WAYS = ("finish", "reset")


async def gone(server: SmallServer) -> None:
    """Wait until the server has noticed."""
    await server.realtime.wait_closed(PATIENCE_S)


def is_clean(server: SmallServer) -> bool:
    return len(server.sessions) == 0 and len(server.wheel) == 0 and not server.flights


@asynccontextmanager
async def opened(server: SmallServer) -> AsyncIterator[tuple[RawWebSocket, dict[str, Any]]]:
    async with connected(server.port) as peer:
        await peer.upgrade(PATH)
        peer.send_event({"type": "session.update", "session": {"turn_detection": None}})
        created = (await peer.until("session.updated"))[0]
        yield peer, created


async def resumed(
    peer: RawWebSocket, created: dict[str, Any], token: str, received: int, path: str = PATH
) -> dict[str, Any]:
    await peer.upgrade(path)
    peer.send_event(
        {
            "type": "session.resume",
            "session_id": created["session"]["id"],
            "resume_token": token,
            "last_received_server_event_seq": received,
        }
    )
    return await peer.event()


@pytest.mark.parametrize("way", WAYS)
async def test_c51_before_there_is_anything(way: str) -> None:
    async with small_server() as server:
        async with connected(server.port) as peer:
            getattr(peer, way)()
        async with connected(server.port) as peer:
            peer.write(b"GET /v1/duplex?autostart=0 HTTP/1.1\r\n")
            getattr(peer, way)()
        async with connected(server.port) as peer:
            await peer.upgrade(PATH)
            getattr(peer, way)()
        await gone(server)
        assert is_clean(server)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("phase", ["created", "append", "committed", "answering"])
async def test_c51_a_session_waits_and_goes_on(way: str, phase: str) -> None:
    async with small_server() as server:
        async with opened(server) as (peer, created):
            received = 2
            if phase != "created":
                peer.send_event(APPEND)
                peer.send_event({"type": "session.heartbeat"})
                received = (await peer.event())["server_event_seq"]
            if phase in ("committed", "answering"):
                peer.send_event({"type": "input_audio_buffer.commit", "response_create": False})
                # The model of this small server decides about turns itself, and says so.
                received = (await peer.until("response.listen"))[-1]["server_event_seq"]
            if phase == "answering":
                peer.send_event({"type": "response.create"})
                received = (await peer.event())["server_event_seq"]
            getattr(peer, way)()
            await gone(server)
        assert len(server.sessions) == 1
        assert server.metrics.sessions_detached.value == 1
        async with connected(server.port) as peer:
            greeting = await resumed(peer, created, created["resume_token"], received)
            assert greeting["type"] == "session.resumed"
            assert "server_event_seq" not in greeting
            assert greeting["next_sample"] == (0 if phase == "created" else 2400)
            assert greeting["session"]["id"] == created["session"]["id"]
            peer.send_event({"type": "session.heartbeat"})
            following = await peer.until("session.heartbeat_ack")
            numbers = [event["server_event_seq"] for event in following]
            assert numbers == list(range(received + 1, received + 1 + len(numbers)))
            peer.send_event({"type": "session.close"})
            assert (await peer.until("session.closed"))[-1]["reason"] == "client_close"
            await peer.goodbye()
        await gone(server)
        assert is_clean(server)


async def test_c30_a_session_outlives_a_message_that_was_too_large() -> None:
    async with small_server(GatewaySettings(max_message_bytes=20_000)) as server:
        async with opened(server) as (peer, created):
            peer.send_event(APPEND)
            peer.send_event({"type": "session.heartbeat"})
            received = (await peer.event())["server_event_seq"]
            peer.send(TEXT, b"m" * 20_001)
            goodbye = await peer.goodbye()
            assert goodbye.code == 1009
            assert "20000" in goodbye.reason
        await gone(server)
        assert server.metrics.sessions_detached.value == 1
        async with connected(server.port) as peer:
            greeting = await resumed(peer, created, created["resume_token"], received)
            assert greeting["type"] == "session.resumed"
            assert greeting["next_sample"] == 2400
            peer.send_event({"type": "session.close"})
            await peer.until("session.closed")
            await peer.goodbye()
        await gone(server)
        assert is_clean(server)


@pytest.mark.parametrize("way", WAYS)
async def test_c51_while_it_closes(way: str) -> None:
    async with small_server() as server:
        async with opened(server) as (peer, created):
            peer.send_event({"type": "session.close"})
            getattr(peer, way)()
            await gone(server)
        sessions = server.sessions
        if len(sessions):
            # The reset was quicker than the message, so the session waits.
            (waiting,) = sessions.look()
            assert waiting.id == created["session"]["id"]
            sessions.close_all("closed")
        assert is_clean(server)


async def test_c51_a_black_hole_is_taken_over() -> None:
    async with small_server() as server, opened(server) as (hole, created):
        hole.stop_reading()
        async with connected(server.port) as peer:
            greeting = await resumed(peer, created, created["resume_token"], 2)
            assert greeting["attachment_generation"] == 2
            hole.go_on_reading()
            replaced = await hole.event()
            assert (replaced["type"], replaced["attachment_generation"]) == ("session.replaced", 2)
            assert (await hole.goodbye()).code == 4001
            # What the old connection still says is nobody's word.
            hole.send_event({"type": "session.close"})
            peer.send_event({"type": "session.heartbeat"})
            assert (await peer.event())["type"] == "session.heartbeat_ack"


async def test_c57_a_refused_resume_leaves_the_connection_open_for_a_new_session() -> None:
    async with small_server() as server, opened(server) as (peer, created):
        async with connected(server.port) as other:
            refused = await resumed(other, created, "wrong", 0)
            assert refused["error"]["code"] == "invalid_resume_token"
            assert len(server.sessions) == 1
            other.send_event({"type": "session.update", "session": {}})
            assert (await other.event())["type"] == "session.created"
            assert len(server.sessions) == 2
        peer.send_event({"type": "session.heartbeat"})
        assert (await peer.event())["type"] == "session.heartbeat_ack"


async def test_c57_only_a_first_message_resumes() -> None:
    async with small_server() as server, opened(server) as (peer, created):
        peer.send_event(
            {
                "type": "session.resume",
                "session_id": created["session"]["id"],
                "resume_token": created["resume_token"],
            }
        )
        assert (await peer.event())["error"]["code"] == "unsupported_session_resume"


async def test_a_connection_for_resuming_alone_takes_no_place() -> None:
    full = SessionSettings(max_sessions=1)
    async with (
        small_server(sessions=full) as server,
        opened(server) as (_peer, created),
        connected(server.port) as other,
        connected(server.port) as third,
    ):
        await other.upgrade(RESUMING)
        other.send_event({"type": "session.update", "session": {}})
        assert (await other.event())["error"]["code"] == "server_full"
        assert (await other.goodbye()).code == 1013
        token = created["resume_token"]
        assert (await resumed(third, created, token, 2, RESUMING))["type"] == "session.resumed"


async def test_c58_many_that_come_back_find_their_own() -> None:
    async with small_server() as server:
        calls: list[dict[str, Any]] = []
        for number in range(20):
            async with connected(server.port) as peer:
                await peer.upgrade(PATH)
                session = {"instructions": f"secret {number}"}
                peer.send_event({"type": "session.update", "session": session})
                calls.append((await peer.until("session.updated"))[0])
                peer.reset()
        await gone(server)
        assert server.metrics.sessions_detached.value == 20
        for number in (7, 19, 0, 12, 3):
            async with connected(server.port) as peer:
                greeting = await resumed(peer, calls[number], calls[number]["resume_token"], 2)
                assert greeting["session"]["instructions"] == f"secret {number}"
                other = calls[(number + 1) % 20]
                async with connected(server.port) as thief:
                    refused = await resumed(thief, other, greeting["resume_token"], 2)
                    assert refused["error"]["code"] == "invalid_resume_token"
