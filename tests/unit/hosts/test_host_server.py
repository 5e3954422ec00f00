"""What a host does for its gateways."""

from __future__ import annotations

import asyncio
import stat
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from duologue.core.errors import CapacityError, ConfigError, UnknownSession
from duologue.core.fence import Fence, Lane
from duologue.engines.ports import EngineEvent, Request
from duologue.hosts.port import LookingOn, Opening
from duologue.hosts.remote_host import RemoteHost
from duologue.protocol.errors import ErrorCode
from duologue.protocol.session_patch import SessionPatch
from duologue.sessions.owners import ANYBODY, Owner
from duologue.sessions.port import Joined
from tests.fakes.link import FakeClient, FakeSession, sound
from tests.patience import PATIENCE_S
from tests.unit.hosts.small_host import RATE, edge_of, small_host


@pytest.fixture
def path() -> Iterator[Path]:
    with TemporaryDirectory() as folder:
        yield Path(folder) / "host.sock"


class OneCall:
    """A gateway's WebRTC calls."""

    def __init__(self) -> None:
        self.shown = FakeSession("rtc_1")
        self.ended: list[str] = []

    def look_on(self, _call_id: str, _owner: Owner) -> Joined:
        return self.shown

    def end_call(self, call_id: str, _owner: Owner) -> None:
        self.ended.append(call_id)


async def settled(*edges: RemoteHost) -> None:
    for edge in edges:
        await edge.look()


async def test_its_socket_is_for_this_user_alone_and_an_old_one_is_no_hindrance(
    path: Path,
) -> None:
    async with small_host(path):
        mode = (await asyncio.to_thread(path.stat)).st_mode
        assert stat.S_IMODE(mode) == 0o600
    async with small_host(path), edge_of(path):
        pass


async def test_it_is_whole_when_all_gateways_are_there(path: Path) -> None:
    async with small_host(path, edges_expected=2) as host:
        async with edge_of(path, "edge-0") as first, edge_of(path, "edge-1"):
            await host.server.wait_edges()
            await first.wait_status(lambda status: status.edges == 2)
            assert first.status.edges_expected == 2
        await host.server.wait_left(PATIENCE_S)
        assert not host.server.edges


async def test_gateways_hear_of_what_changes(path: Path) -> None:
    async with small_host(path) as host, edge_of(path) as edge:
        edge.check_room()
        await edge.open(Opening())
        await edge.wait_status(lambda status: status.sessions == 2)
        assert len(edge) == len(await edge.look()) == 2
        host.sessions.accepting = False
        await edge.wait_status(lambda status: not status.accepting)
        assert not edge.accepting
        with pytest.raises(CapacityError) as caught:
            edge.check_room()
        assert caught.value.code == ErrorCode.SHUTTING_DOWN


async def test_the_limits_of_a_key_hold_for_all_gateways_together(path: Path) -> None:
    async with small_host(path), edge_of(path, "a") as first, edge_of(path, "b") as second:
        waits = [await edge.take("kitchen") for edge in (first, second, first)]
        assert waits[:RATE] == [0.0, 0.0]
        assert waits[RATE] > 0
        assert await second.take("somebody without a limit") == 0


async def test_a_call_is_looked_on_and_ended_from_any_gateway(path: Path) -> None:
    async with small_host(path), edge_of(path, "a") as holder, edge_of(path, "b") as other:
        calls = OneCall()
        holder.calls = calls
        holder.call_began("rtc_1", ANYBODY)
        await settled(holder)
        port = await other.open(LookingOn(call_id="rtc_1"))
        client = FakeClient(port)
        port.attach(client)
        await settled(other, holder, other)
        calls.shown.say(sound("a"))
        await settled(holder, other)
        assert [delivery.event for delivery in client.got] == [sound("a")]
        await other.hang_up("rtc_1", ANYBODY)
        assert calls.ended == ["rtc_1"]
        with pytest.raises(UnknownSession):
            await other.hang_up("rtc_1", Owner("somebody else"))
        with pytest.raises(UnknownSession):
            await other.open(LookingOn(call_id="rtc_2"))
        holder.call_ended("rtc_1")
        await settled(holder)
        with pytest.raises(UnknownSession):
            await other.hang_up("rtc_1", ANYBODY)


async def test_the_calls_of_a_gateway_that_is_gone_are_gone_and_come_again_with_it(
    path: Path,
) -> None:
    async with small_host(path) as host:
        async with edge_of(path) as holder:
            holder.call_began("rtc_1", ANYBODY)
            await settled(holder)
            assert set(host.server.calls) == {"rtc_1"}
        await host.server.wait_left(PATIENCE_S)
        assert not host.server.calls


async def test_figures_of_all_processes_are_gathered(path: Path) -> None:
    async with small_host(path), edge_of(path, "a") as first, edge_of(path, "b"):
        processes = await first.all_figures()
        assert sorted(each.process for each in processes) == ["a", "b", "host"]


async def test_a_plain_request_that_runs_is_waited_for(path: Path) -> None:
    class Nobody:
        def on_engine_event(self, _event: EngineEvent) -> None:
            pass

    async with small_host(path) as host, edge_of(path) as edge:
        edge.engine.submit(Request("r", "vad", Fence("r", Lane("r"), 0), more_input=True), Nobody())
        await settled(edge)
        waiting = asyncio.create_task(host.server.wait_idle(30))
        await asyncio.sleep(0)
        assert not waiting.done()
        edge.engine.cancel("r")
        await settled(edge)
        host.call.engine.complete("edge-0/r") if host.call.engine.of("vad") else None
        await waiting


async def test_a_preview_and_a_session_that_is_begun_without_waiting(path: Path) -> None:
    async with small_host(path) as host, edge_of(path) as edge:
        shown = await edge.preview(None, SessionPatch(instructions="Sing."))
        assert getattr(shown, "instructions", None) == "Sing."
        port = edge.begin(Opening())
        client = FakeClient(port)
        port.attach(client)
        await settled(edge, edge)
        assert client.got
        assert len(host.sessions) == 2
        port.detach(client)
        await settled(edge)
        assert len(host.sessions) == 1


async def test_gateways_of_other_machines_need_a_secret(path: Path) -> None:
    async with small_host(path) as host:
        with pytest.raises(ConfigError, match="link_secret"):
            await host.server.listen_tcp("127.0.0.1", 0)
    async with small_host(path, secret=b"s" * 16) as host:
        port = await host.server.listen_tcp("127.0.0.1", 0)
        with pytest.raises(ConfigError, match="cannot listen"):
            await host.server.listen_tcp("127.0.0.1", port)
