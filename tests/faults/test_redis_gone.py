"""Redis goes and comes back: links and calls go on, and hosts are found again."""

from __future__ import annotations

import json
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp
import pytest
from pydantic import SecretStr

from duologue.composition.edge import running_edge
from duologue.composition.host import running_host
from duologue.composition.orders import EdgeOrder, HostOrder
from duologue.hosts.settings import HostsSettings
from tests.fakes.edged_gateway import free_port
from tests.fakes.redis_server import redis_server
from tests.fakes.small_gateway import small_settings
from tests.patience import until


async def test_calls_go_on_without_redis_and_new_hosts_are_found_when_it_is_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("duologue.hosts.registrar.LOOK_S", 0.05)
    async with (
        redis_server(tmp_path) as redis,
        AsyncExitStack() as stack,
        aiohttp.ClientSession() as http,
    ):
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="duologue-")))
        hosts = HostsSettings(
            link_port=0,
            link_secret=SecretStr("a secret of two machines"),
            directory_url=SecretStr(redis.url),
            # A host that a busy machine lets say nothing for so long would be none.
            directory_ttl_s=6.0,
        )
        settings = small_settings().model_copy(update={"hosts": hosts})

        async def host(number: int) -> None:
            order = HostOrder(
                name="host", socket=str(folder / f"{number}.sock"), tag=f"host{number:02}"
            )
            await stack.enter_async_context(running_host(settings, order))

        await host(0)
        order = EdgeOrder(name="edge-0", index=0, socket="", port=stack.enter_context(free_port()))
        edge = await stack.enter_async_context(running_edge(settings, order))
        members = edge.fleet.members
        await until(lambda: bool(members) and members[0].status.loaded)
        call = await stack.enter_async_context(
            http.ws_connect(f"{edge.url}/v1/realtime?model=echo")
        )
        assert json.loads(await call.receive_str())["type"] == "session.created"
        await redis.kill()
        await host(1)  # it cannot say that it is there
        await call.send_json({"type": "input_audio_buffer.clear"})
        assert json.loads(await call.receive_str())["type"] == "input_audio_buffer.cleared"
        async with http.ws_connect(f"{edge.url}/v1/realtime?model=echo") as another:
            assert json.loads(await another.receive_str())["type"] == "session.created"
        assert len(members) == 1
        await redis.start()
        await until(lambda: len(members) == 2 and all(m.status.loaded for m in members))
        await call.send_json({"type": "input_audio_buffer.clear"})
        assert json.loads(await call.receive_str())["type"] == "input_audio_buffer.cleared"
