"""Several session hosts, as on several machines: clients go where their session is, or room."""

from __future__ import annotations

import json
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from pydantic import SecretStr

from duologue.composition import edge as edge_module
from duologue.composition import host as host_module
from duologue.composition.edge import EdgeApp, running_edge
from duologue.composition.host import HostApp, running_host
from duologue.composition.orders import EdgeOrder, HostOrder
from duologue.hosts.directory import Directory
from duologue.hosts.routing import tag_of
from duologue.hosts.settings import HostsSettings
from duologue.settings import Settings
from tests.fakes.directory import FakeDirectory
from tests.fakes.edged_gateway import SIGNING_KEY, free_port
from tests.fakes.link import until
from tests.fakes.small_gateway import small_settings

SECRET = "a secret of two machines"


@dataclass
class Machines:
    directory: FakeDirectory
    hosts: list[HostApp]
    edge: EdgeApp

    @property
    def calls(self) -> list[int]:
        return [len(host.side.sessions) for host in self.hosts]


def settings(max_sessions: int = 8) -> Settings:
    small = small_settings()
    return small.model_copy(
        update={
            "hosts": HostsSettings(link_port=0, link_secret=SecretStr(SECRET)),
            "sessions": small.sessions.model_copy(update={"max_sessions": max_sessions}),
        }
    )


@asynccontextmanager
async def machines(
    monkeypatch: pytest.MonkeyPatch, hosts: int = 2, *, max_sessions: int = 8, local: bool = True
) -> AsyncIterator[Machines]:
    """The first host is on the gateway's own machine, unless there is none there."""
    directory = FakeDirectory()

    def configured(_settings: HostsSettings) -> Directory:
        return directory

    monkeypatch.setattr(host_module, "configured_directory", configured)
    monkeypatch.setattr(edge_module, "configured_directory", configured)
    monkeypatch.setattr("duologue.hosts.registrar.LOOK_S", 0.01)
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="duologue-")))
        asked = settings(max_sessions)
        running = [
            await stack.enter_async_context(
                running_host(
                    asked,
                    HostOrder(name="host", socket=str(folder / f"{n}.sock"), tag=f"host{n:02}"),
                )
            )
            for n in range(hosts)
        ]
        edge = await stack.enter_async_context(
            running_edge(
                asked,
                EdgeOrder(
                    name="edge-0",
                    index=0,
                    socket=str(folder / "0.sock") if local else "",
                    port=stack.enter_context(free_port()),
                    signing_key=SIGNING_KEY,
                ),
            )
        )
        await until(lambda: len([m for m in edge.fleet.members if m.status.loaded]) == hosts)
        yield Machines(directory, running, edge)


async def event_of(call: aiohttp.ClientWebSocketResponse, kind: str) -> dict[str, Any]:
    while (event := json.loads(await call.receive_str()))["type"] != kind:
        pass
    assert isinstance(event, dict)
    return event


async def test_new_calls_go_where_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    async with (
        machines(monkeypatch, max_sessions=2) as made,
        aiohttp.ClientSession() as http,
        AsyncExitStack() as calls,
    ):
        for number in range(1, 5):
            call = await calls.enter_async_context(
                http.ws_connect(f"{made.edge.url}/v1/realtime?model=echo")
            )
            await event_of(call, "session.created")
            await until(lambda n=number: len(made.edge.fleet) == n)  # type: ignore[misc]
        assert made.calls == [2, 2]
        with pytest.raises(aiohttp.WSServerHandshakeError) as caught:
            await http.ws_connect(f"{made.edge.url}/v1/realtime")
        assert caught.value.status == 503


async def test_a_session_is_found_again_at_its_host(monkeypatch: pytest.MonkeyPatch) -> None:
    async with machines(monkeypatch) as made, aiohttp.ClientSession() as http:
        made.hosts[0].side.sessions.accepting = False
        await until(lambda: not made.edge.host.status.accepting)
        path = f"{made.edge.url}/v1/duplex?autostart=0"
        async with http.ws_connect(path) as call:
            await call.send_json({"type": "session.update", "session": {"model": "echo"}})
            created = await event_of(call, "session.created")
            session_id = created["session"]["id"]
            assert tag_of(session_id) == "host01"
            made.hosts[0].side.sessions.accepting = True
            await until(lambda: made.edge.host.status.accepting)
            async with http.ws_connect(path) as other:
                await other.send_json(
                    {
                        "type": "session.resume",
                        "session_id": session_id,
                        "resume_token": created["resume_token"],
                        "last_received_server_event_seq": created["server_event_seq"],
                    }
                )
                assert (await event_of(other, "session.resumed"))["session_id"] == session_id
                assert made.calls == [0, 1]


async def test_an_address_that_names_a_session_leads_to_its_host(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with machines(monkeypatch) as made, aiohttp.ClientSession() as http:
        async with http.ws_connect(f"{made.edge.url}/v1/realtime?resumable=1") as call:
            created = await event_of(call, "session.created")
            where = made.calls.index(1)
            session_id, token = created["session"]["id"], created["resume_token"]
            query = f"session_id={session_id}&resume_token={token}"
            async with http.ws_connect(f"{made.edge.url}/v1/realtime?{query}") as again:
                assert (await event_of(again, "session.created"))["session"]["id"] == session_id
                assert made.calls[where] == 1
        with pytest.raises(aiohttp.WSServerHandshakeError) as caught:
            await http.ws_connect(
                f"{made.edge.url}/v1/realtime?session_id={session_id}&resume_token=guessed"
            )
        assert caught.value.status == 403


async def test_a_host_that_drains_gets_no_new_calls_and_one_that_is_gone_none_either(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with (
        machines(monkeypatch, local=False) as made,
        aiohttp.ClientSession() as http,
        AsyncExitStack() as calls,
    ):
        made.hosts[0].side.sessions.accepting = False
        await until(lambda: not all(m.accepting for m in made.edge.fleet.members))
        for _ in range(3):
            call = await calls.enter_async_context(
                http.ws_connect(f"{made.edge.url}/v1/realtime?model=echo")
            )
            await event_of(call, "session.created")
        assert made.calls == [0, 3]
        made.directory.kept.pop("host01")
        await made.hosts[1].server.stop()
        await until(lambda: len(made.edge.fleet.members) == 1)
        async with http.get(f"{made.edge.url}/ready") as answer:
            assert answer.status == 503


async def test_a_host_that_is_lost_ends_its_own_calls_by_name_and_nobody_elses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with (
        machines(monkeypatch) as made,
        aiohttp.ClientSession() as http,
        AsyncExitStack() as calls,
    ):
        held = []
        for number in (1, 2):
            call = await calls.enter_async_context(
                http.ws_connect(f"{made.edge.url}/v1/realtime?model=echo")
            )
            created = await event_of(call, "session.created")
            held.append((tag_of(created["session"]["id"]), call))
            await until(lambda n=number: len(made.edge.fleet) == n)  # type: ignore[misc]
        calls_of = dict(held)
        assert sorted(filter(None, calls_of)) == ["host00", "host01"]
        made.directory.kept.pop("host01")
        await made.hosts[1].server.stop()
        lost, other = calls_of["host01"], calls_of["host00"]
        assert (await event_of(lost, "error"))["error"]["code"] == "session_host_lost"
        closed = await lost.receive()
        assert (closed.type, closed.data) == (aiohttp.WSMsgType.CLOSE, 1012)
        await other.send_json({"type": "input_audio_buffer.clear"})
        await event_of(other, "input_audio_buffer.cleared")
        async with http.ws_connect(f"{made.edge.url}/v1/realtime?model=echo") as new:
            created = await event_of(new, "session.created")
            assert tag_of(created["session"]["id"]) == "host00"


async def test_calls_and_new_ones_go_on_without_the_directory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with machines(monkeypatch) as made, aiohttp.ClientSession() as http:
        made.directory.is_lost = True
        async with http.ws_connect(f"{made.edge.url}/v1/realtime?model=echo") as call:
            await event_of(call, "session.created")
            assert len(made.edge.fleet.members) == 2
        made.directory.is_lost = False
        made.directory.kept.clear()  # it has lost its memory, and hosts have yet to say so again
        async with http.ws_connect(f"{made.edge.url}/v1/realtime?model=echo") as call:
            await event_of(call, "session.created")
            assert len(made.edge.fleet.members) == 2


async def test_figures_and_sessions_of_all_hosts_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    async with machines(monkeypatch) as made, aiohttp.ClientSession() as http:
        async with http.ws_connect(f"{made.edge.url}/v1/realtime?model=echo") as call:
            await event_of(call, "session.created")
            assert len(await made.edge.fleet.look()) == 1
            async with http.get(f"{made.edge.url}/metrics") as answer:
                page = await answer.text()
        for process in ("host", "edge-0", "host-host01"):
            assert f'duologue_build_info{{process="{process}"' in page
