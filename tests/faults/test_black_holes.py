"""Peers that are still there for the kernel and for nobody else, and a server that stands still."""

from __future__ import annotations

import asyncio
import json
import time

import pytest

from duologue.gateway.http.settings import HttpSettings
from duologue.gateway.settings import GatewaySettings
from duologue.sessions.settings import SessionSettings
from tests.cases.test_lost_connections import opened, resumed
from tests.faults.gateway_line import (
    COMMIT,
    CREATE,
    LONG,
    append,
    call,
    line_settings,
    serving,
    until,
)
from tests.faults.phases import PHASES, Phase
from tests.patience import PATIENCE_S
from tests.unit.gateway.raw_websocket import CLOSE, PING, PONG, TEXT, UPGRADE, connected
from tests.unit.gateway.small_server import small_server

CALLS = 20
BLOCKED_S = 6.0
BLOCKS = 2


@pytest.mark.parametrize("private", [True, False], ids=["callback", "loop"])
async def test_a_black_hole_at_any_moment_is_noticed_by_its_silence_and_leaves_nothing_behind(
    private: bool,
) -> None:
    gateway = GatewaySettings(
        private_reader=private,
        heartbeat_s=2.0,
        http=HttpSettings(first_request_timeout_s=2.0),
    )
    sessions = SessionSettings(max_sessions=len(PHASES))
    async with serving(line_settings(gateway, sessions)) as server:

        async def fall_into_a_hole(phase: Phase) -> None:
            async with connected(server.port) as line:
                await phase(line)
                line.stop_reading()
                await everybody_is_there.wait()
                await server.is_clean()

        everybody_is_there = asyncio.Barrier(len(PHASES))
        async with asyncio.TaskGroup() as group:
            for phase in PHASES:
                group.create_task(fall_into_a_hole(phase))
        await server.takes_a_call()


async def test_a_session_in_a_black_hole_waits_for_its_client_from_the_heartbeat_on() -> None:
    async with small_server(GatewaySettings(heartbeat_s=0.4)) as server:
        async with opened(server) as (hole, created):
            hole.stop_reading()
            await until(lambda: server.metrics.sessions_detached.value == 1)
            (waiting,) = server.sessions.look()
            assert waiting.id == created["session"]["id"]
        async with connected(server.port) as peer:
            greeting = await resumed(peer, created, created["resume_token"], 2)
            assert greeting["type"] == "session.resumed"
            peer.send_event({"type": "session.close"})
            assert (await peer.until("session.closed"))[-1]["reason"] == "client_close"


async def test_a_loop_that_stands_still_for_longer_than_the_heartbeat_ends_no_call() -> None:
    """C54: all answers go on; nobody is blamed for what could not be read meanwhile."""
    gateway = GatewaySettings(heartbeat_s=4.0)
    # The callers live in the loop that stands still, and take nothing meanwhile either.
    patient = SessionSettings(stall_limit_s=BLOCKS * BLOCKED_S + PATIENCE_S)
    async with serving(line_settings(gateway, patient)) as server:
        blocks = 0

        async def hold_a_call() -> None:
            nonlocal blocks
            async with call(server.port, LONG) as line:
                for event in (append(600), COMMIT, CREATE):
                    line.send_event(event)
                await line.until("response.output_audio.delta")
                await everybody_talks.wait()
                while blocks < BLOCKS:
                    frame = await line.frame()
                    if frame.opcode == PING:
                        if blocks < BLOCKS:
                            # Everybody was asked, and nobody's answer can be read for a while.
                            blocks += 1
                            time.sleep(BLOCKED_S)  # noqa: ASYNC251 - this is the fault
                        line.send(PONG, frame.payload)
                await line.until("response.output_audio.delta")
                line.send_event({"type": "response.cancel"})
                done = (await line.until("response.done"))[-1]
                assert done["response"]["status_details"]["reason"] == "client_cancelled"
                line.send_event(CREATE)
                await line.until("response.output_audio.delta")

        everybody_talks = asyncio.Barrier(CALLS)
        async with asyncio.TaskGroup() as group:
            for _ in range(CALLS):
                group.create_task(hold_a_call())
        lag = server.app.metrics.loop_lag
        assert lag.quantile(1.0) == float("inf"), "it shows in the figures"
        await server.is_clean()


async def test_a_reader_that_stalls_is_let_go_with_1013_and_comes_back_without_a_gap() -> None:
    gateway = GatewaySettings(close_timeout_s=20.0)
    sessions = SessionSettings(stall_limit_s=1.0, send_lead_ms=0, disconnect_grace_s=60)
    path = f"/v1/duplex?model={LONG}&autostart=0"
    async with serving(line_settings(gateway, sessions)) as server:
        async with connected(server.port, is_deaf=True) as line:
            await line.ask(path, UPGRADE)
            line.send_event({"type": "session.update", "session": {"turn_detection": None}})
            (created, *_) = await line.until("session.updated")
            line.send_event(CREATE)
            line.stop_reading()
            await until(lambda: server.app.sessions.detached == 1)
            line.go_on_reading()
            received, frame = 2, await line.frame()
            while frame.opcode == TEXT:
                number = json.loads(frame.payload)["server_event_seq"]
                assert number == received + 1
                received, frame = number, await line.frame()
            assert (frame.opcode, frame.code) == (CLOSE, 1013)
        async with connected(server.port) as back:
            greeting = await resumed(back, created, created["resume_token"], received, path)
            assert greeting["type"] == "session.resumed"
            for number in range(received + 1, received + 20):
                assert (await back.event())["server_event_seq"] == number
            back.send_event({"type": "session.close"})
            await back.goodbye()
        await server.is_clean()
