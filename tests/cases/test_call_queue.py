"""C50: one too many may wait, if it asks to; in its turn, and nobody is overtaken."""

from __future__ import annotations

import pytest

from duologue.gateway.settings import GatewaySettings
from duologue.sessions.settings import SessionSettings
from tests.faults.gateway_line import SHORT, line_settings, serving, take_turn
from tests.patience import PATIENCE_S
from tests.unit.gateway.raw_websocket import UPGRADE, RawWebSocket, connected
from tests.unit.gateway.small_server import small_server

PATH = f"/v1/realtime?model={SHORT}&queue=1"
DUPLEX = f"/v1/duplex?model={SHORT}&autostart=0&queue=1"
FULL = SessionSettings(max_sessions=1)
QUEUE = GatewaySettings(queued_calls=2)
MANUAL = {"type": "realtime", "audio": {"input": {"turn_detection": None}}}


async def places(line: RawWebSocket, number: int) -> list[tuple[int, int]]:
    """The next positions that a caller is told."""
    events = [await line.event() for _ in range(number)]
    assert {event["type"] for event in events} == {"session.queued"}
    return [(event["position"], event["waiting"]) for event in events]


async def test_c50_calls_that_wait_are_told_their_position_and_get_their_turn_in_order() -> None:
    async with (
        serving(line_settings(QUEUE, FULL)) as server,
        connected(server.port) as first,
        connected(server.port) as second,
        connected(server.port) as third,
    ):
        await first.upgrade(PATH)
        assert (await first.event())["type"] == "session.created"
        await second.upgrade(PATH)
        assert await places(second, 1) == [(1, 1)]
        await third.upgrade(PATH)
        assert await places(third, 1) == [(2, 2)]
        first.close()
        await first.goodbye()
        assert (await second.event())["type"] == "session.created"
        assert await places(third, 1) == [(1, 1)]
        second.close()
        await second.goodbye()
        assert (await third.event())["type"] == "session.created"
        third.send_event({"type": "session.update", "session": MANUAL})
        await third.until("session.updated")
        await take_turn(third)
        queued = server.app.metrics.calls_queued
        assert queued["admitted"].value == 2


async def test_c50_who_does_not_ask_to_wait_is_refused_and_overtakes_nobody() -> None:
    async with (
        serving(line_settings(QUEUE, FULL)) as server,
        connected(server.port) as first,
        connected(server.port) as second,
    ):
        await first.upgrade(PATH)
        await first.event()
        await second.upgrade(PATH)
        await places(second, 1)
        first.close()
        await first.goodbye()
        # There is a place by now, and it is not for those who come later.
        for path in (PATH.removesuffix("&queue=1"), DUPLEX.removesuffix("&queue=1")):
            async with connected(server.port) as late:
                refused = await late.ask(path, UPGRADE)
                assert refused.status == 503
                assert refused.json["error"]["code"] == "server_full"
                assert int(refused.headers["Retry-After"]) > 0
        assert (await second.event())["type"] == "session.created"


async def test_c50_the_queue_has_a_bound_and_without_one_nobody_waits() -> None:
    for waiting in (0, 1):
        gateway = GatewaySettings(queued_calls=waiting)
        async with (
            serving(line_settings(gateway, FULL)) as server,
            connected(server.port) as first,
            connected(server.port) as second,
            connected(server.port) as third,
        ):
            await first.upgrade(PATH)
            if waiting:
                await second.upgrade(PATH)
            refused = await third.ask(PATH, UPGRADE)
            assert refused.status == 503
            assert int(refused.headers["Retry-After"]) > 0


async def test_what_is_said_while_waiting_is_heard_afterwards_and_sound_is_refused() -> None:
    async with (
        serving(line_settings(QUEUE, FULL)) as server,
        connected(server.port) as first,
        connected(server.port) as second,
    ):
        await first.upgrade(PATH)
        await second.upgrade(PATH)
        await places(second, 1)
        session = {**MANUAL, "instructions": "Be kind."}
        second.send_event({"type": "session.update", "session": session})
        second.send_event({"type": "input_audio_buffer.append", "event_id": "a", "audio": "AAAA"})
        error = (await second.event())["error"]
        assert (error["code"], error["event_id"]) == ("session_queued", "a")
        for _ in range(16):
            second.send_event({"type": "input_audio_buffer.clear", "event_id": "many"})
        assert (await second.event())["error"]["event_id"] == "many"
        second.write(b"\x81\x83\0\0\0\0[]x")
        assert (await second.event())["error"]["type"] == "invalid_request_error"
        first.close()
        await first.goodbye()
        events = await second.until("session.updated")
        assert events[0]["type"] == "session.created"
        assert events[-1]["session"]["instructions"] == "Be kind."
        for _ in range(15):
            assert (await second.event())["type"] == "input_audio_buffer.cleared"


async def test_a_duplex_client_may_wait_and_describes_its_session_meanwhile() -> None:
    async with (
        serving(line_settings(QUEUE, FULL)) as server,
        connected(server.port) as first,
        connected(server.port) as second,
    ):
        await first.upgrade(PATH)
        await second.upgrade(DUPLEX)
        assert await places(second, 1) == [(1, 1)]
        second.send_event({"type": "session.update", "session": {"turn_detection": None}})
        first.close()
        await first.goodbye()
        assert [event["type"] for event in await second.until("session.updated")] == [
            "session.created",
            "session.updated",
        ]


@pytest.mark.parametrize("how", ["leaves", "closes", "is too late", "server stops"])
async def test_who_leaves_the_queue_leaves_nothing_behind_and_those_behind_move_up(
    how: str,
) -> None:
    timeout_s = 0.3 if how == "is too late" else 60.0
    gateway = GatewaySettings(queued_calls=2, queue_timeout_s=timeout_s)
    async with serving(line_settings(gateway, FULL)) as server:
        async with (
            connected(server.port) as first,
            connected(server.port) as second,
            connected(server.port) as third,
        ):
            await first.upgrade(PATH)
            await second.upgrade(PATH)
            await places(second, 1)
            if how == "is too late":
                assert (await second.event())["error"]["code"] == "server_full"
                assert (await second.goodbye()).code == 1013
            elif how == "server stops":
                server.app.sessions.close_all("server_shutting_down")
                assert (await second.event())["error"]["code"] == "server_shutting_down"
                assert (await second.goodbye()).code == 1001
            else:
                await third.upgrade(PATH)
                assert await places(third, 1) == [(2, 2)]
                second.reset() if how == "leaves" else second.close()
                assert await places(third, 1) == [(1, 1)]
                first.close()
                await first.goodbye()
                assert (await third.event())["type"] == "session.created"
        await server.is_clean()


async def test_a_connection_that_comes_back_to_its_call_waits_for_nothing() -> None:
    async with small_server(QUEUE, FULL) as server:
        async with connected(server.port) as peer:
            await peer.upgrade("/v1/duplex?model=echo&autostart=0")
            peer.send_event({"type": "session.update", "session": {"turn_detection": None}})
            (created, *_) = await peer.until("session.updated")
            peer.reset()
        await server.realtime.wait_closed(PATIENCE_S)
        async with connected(server.port) as waiting, connected(server.port) as back:
            await waiting.upgrade("/v1/realtime?queue=1")
            await places(waiting, 1)
            await back.upgrade("/v1/duplex?resume=1")
            back.send_event(
                {
                    "type": "session.resume",
                    "session_id": created["session"]["id"],
                    "resume_token": created["resume_token"],
                    "last_received_server_event_seq": 2,
                }
            )
            assert (await back.event())["type"] == "session.resumed"
