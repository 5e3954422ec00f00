from __future__ import annotations

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

from pydantic import SecretStr

from duologue.composition.host import running_host
from duologue.composition.orders import HostOrder
from duologue.hosts.messages import Status
from duologue.hosts.routing import tag_of
from duologue.hosts.settings import HostsSettings
from duologue.protocol.duplex.session_patch import DuplexPatch
from duologue.sessions.settings import SessionSettings
from tests.fakes.edged_gateway import edged_gateway
from tests.fakes.link import until
from tests.fakes.small_gateway import small_settings


async def test_calls_may_finish_while_it_stops_and_its_gateways_hear_of_it() -> None:
    settings = small_settings()
    patient = settings.gateway.model_copy(update={"drain_timeout_s": 600.0})
    settings = settings.model_copy(update={"gateway": patient})
    drained: list[str] = []
    stop, stop_now = asyncio.Event(), asyncio.Event()
    with TemporaryDirectory() as folder:
        order = HostOrder(name="host", socket=str(Path(folder) / "host.sock"))
        running = asyncio.Event()
        sessions = []

        async def run() -> None:
            async with running_host(
                settings, order, stop_now=stop_now, on_drained=lambda: drained.append("now")
            ) as host:
                sessions.append(host.side.sessions)
                host.side.sessions.open("echo")
                running.set()
                await stop.wait()

        async with asyncio.TaskGroup() as group:
            task = group.create_task(run())
            await running.wait()
            stop.set()
            await until(lambda: not sessions[0].accepting)
            assert drained == []
            stop_now.set()
            await task
    assert drained == ["now"]
    assert len(sessions[0]) == 0


async def test_it_listens_for_other_machines_where_it_is_told_to() -> None:
    settings = small_settings()
    hosts = HostsSettings(link_port=0, link_secret=SecretStr("a secret of two machines"))
    with TemporaryDirectory() as folder:
        order = HostOrder(name="host", socket=str(Path(folder) / "host.sock"))
        async with running_host(settings.model_copy(update={"hosts": hosts}), order) as host:
            assert host.link_port


async def test_conversations_outlive_a_stop_in_good_order_and_the_next_start_knows_whose_they_are(
    tmp_path: Path,
) -> None:
    settings = small_settings(sessions=SessionSettings(checkpoint_folder=tmp_path / "kept"))
    orders = [
        HostOrder(name="host", socket=str(tmp_path / "host.sock"), tag=tag)
        for tag in ("first0", "second")
    ]
    async with running_host(settings, orders[0]) as host:
        opened = host.side.sessions.open("echo", patch=DuplexPatch(), resumable=True)
        over = host.side.sessions.open("echo", patch=DuplexPatch(), resumable=True)
        over.close("closed")
    async with running_host(settings, orders[1]) as host:
        status = host.server.status
        assert (status.tag, status.earlier_tags) == ("second", ("first0",))
        assert status.holds(tag_of(opened.id))
        assert not status.holds("third0")
        assert not status.holds(None)
        assert len(host.side.sessions) == 0
    assert len(await asyncio.to_thread(list, (tmp_path / "kept").glob("*.checkpoint"))) == 1


async def test_gateways_see_its_limits() -> None:
    async with edged_gateway(small_settings()) as server:
        status = server.edges[0].host.status
        assert isinstance(status, Status)
        assert status.max_sessions == small_settings().sessions.max_sessions
        assert status.workers_ready == status.workers > 0
