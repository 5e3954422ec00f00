"""How a server comes up and goes down, as its callers see it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
import yaml

from duologue.app import running_app
from duologue.core.errors import EngineError
from duologue.engines.pipeline import Pipeline, StageSpec
from duologue.engines.runners.registry import RunnerType
from duologue.engines.runners.scripted import ToneRunner, ToneSettings
from duologue.engines.settings import EngineSettings
from duologue.gateway.settings import GatewaySettings
from duologue.settings import ModelSettings, Settings
from tests.patience import PATIENCE_S
from tests.unit.gateway.raw_websocket import UPGRADE, connected

PATH = "/v1/realtime"

MAY_LOAD = threading.Event()


class SlowSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    fails: bool = False


def load(settings: SlowSettings) -> ToneRunner:
    MAY_LOAD.wait(PATIENCE_S)
    if settings.fails:
        raise EngineError("the weights are broken")
    return ToneRunner(ToneSettings())


SLOW = RunnerType.plain(SlowSettings, load)


@pytest.fixture(autouse=True)
def loading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Models load at once, unless a test has cleared ``MAY_LOAD``."""
    metadata = tmp_path / "slow-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: slow\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text(f"[duologue.runners]\nslow = {__name__}:SLOW\n")
    monkeypatch.syspath_prepend(tmp_path)
    MAY_LOAD.set()
    yield
    MAY_LOAD.set()


def settings(tmp_path: Path, *, fails: bool = False, port: int = 0, drain_s: float = 0) -> Settings:
    runner = {"runner": "slow", "executor": "inline", "settings": {"fails": fails}}
    slow = Pipeline(name="slow", stages=(msgspec.convert({"name": "slow", **runner}, StageSpec),))
    path = tmp_path / "slow.yaml"
    path.write_text(yaml.safe_dump(msgspec.to_builtins(slow)))
    return Settings(
        models=(ModelSettings(name="echo", plugin="echo"),),
        engine=EngineSettings(pipelines=("scripted",), pipeline_files=(path,)),
        gateway=GatewaySettings(port=port, drain_timeout_s=drain_s, close_timeout_s=1.0),
    )


async def free_port() -> int:
    server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    port: int = server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()
    return port


async def test_it_listens_while_models_load_and_takes_calls_when_they_are_loaded(
    tmp_path: Path,
) -> None:
    port = await free_port()
    MAY_LOAD.clear()
    seen = asyncio.Event()
    context = running_app(settings(tmp_path, port=port), progress=lambda _: seen.set())
    entering = asyncio.create_task(context.__aenter__())
    await asyncio.wait_for(seen.wait(), 10)  # the scripted models are loaded, and we listen
    async with connected(port) as line:
        assert (await line.ask("/health")).status == 200
        answer = await line.ask("/ready")
        assert answer.status == 503
        assert answer.json["error"]["code"] == "server_not_ready"
        assert answer.json["workers"] == 3
        assert answer.json["workers_ready"] < 3
        assert (await line.ask(PATH, UPGRADE)).status == 503
        assert not entering.done()
        MAY_LOAD.set()
        app = await asyncio.wait_for(entering, 10)
        assert app.url == f"http://localhost:{port}"
        assert (await line.ask("/ready")).json["workers_ready"] == 3
        await line.upgrade(PATH)
    await context.__aexit__(None, None, None)


async def test_a_model_that_cannot_be_loaded_ends_it_and_leaves_nothing(tmp_path: Path) -> None:
    port = await free_port()
    for _ in range(2):  # the port is free again
        with pytest.raises(EngineError, match="the weights are broken"):
            async with running_app(settings(tmp_path, fails=True, port=port)):
                pass


async def test_a_start_that_is_cancelled_leaves_nothing(tmp_path: Path) -> None:
    MAY_LOAD.clear()
    seen = asyncio.Event()
    context = running_app(settings(tmp_path), progress=lambda _: seen.set())
    entering = asyncio.create_task(context.__aenter__())
    await asyncio.wait_for(seen.wait(), 10)
    entering.cancel()
    MAY_LOAD.set()
    with pytest.raises(asyncio.CancelledError):
        await entering


async def test_at_the_end_calls_are_told_and_new_ones_are_refused(tmp_path: Path) -> None:
    async with running_app(settings(tmp_path)) as app:
        port = int(app.url.rpartition(":")[2])
        context = connected(port)
        line = await context.__aenter__()
        await line.upgrade(PATH)
        await line.event()
        hanging_up = asyncio.create_task(hang_up_when_told(line))
    # The client had its answer read, so nobody waited for a time-out.
    assert await hanging_up == 1001
    await context.__aexit__(None, None, None)


async def hang_up_when_told(line) -> int:
    goodbye = await line.goodbye()
    line.close(goodbye.code)
    assert await line.end() == b""
    return goodbye.code


async def test_calls_may_finish_before_the_end_and_new_ones_are_refused(tmp_path: Path) -> None:
    async with running_app(settings(tmp_path, drain_s=10)) as app:
        port = int(app.url.rpartition(":")[2])
        context = connected(port)
        line = await context.__aenter__()
        await line.upgrade(PATH)
        await line.event()
        finishing = asyncio.create_task(finish_while_draining(line, port))
    assert await finishing == 1000
    await context.__aexit__(None, None, None)


async def finish_while_draining(line, port: int) -> int:
    async with connected(port) as another:
        answer = await another.ask(PATH, UPGRADE)
        assert answer.status == 503
        assert answer.json["error"]["code"] == "server_shutting_down"
        assert (await another.ask("/ready")).status == 503
        assert (await another.ask("/health")).status == 200
    line.close()
    return (await line.goodbye()).code


async def test_a_hurry_ends_calls_that_would_go_on(tmp_path: Path) -> None:
    hurry = asyncio.Event()
    async with running_app(settings(tmp_path, drain_s=600), stop_now=hurry) as app:
        port = int(app.url.rpartition(":")[2])
        context = connected(port)
        line = await context.__aenter__()
        await line.upgrade(PATH)
        await line.event()
        hanging_up = asyncio.create_task(hang_up_when_told(line))
        hurry.set()
    assert await hanging_up == 1001
    await context.__aexit__(None, None, None)


async def test_a_failure_of_whoever_runs_it_stops_everything(tmp_path: Path) -> None:
    ports: list[int] = []
    with pytest.raises(ZeroDivisionError):
        await fail_while_running(settings(tmp_path), ports)
    with pytest.raises(ConnectionError):
        await connected(ports[0]).__aenter__()


async def fail_while_running(settings: Settings, ports: list[int]) -> None:
    async with running_app(settings) as app:
        ports.append(int(app.url.rpartition(":")[2]))
        raise ZeroDivisionError
