"""A real gateway on a free port, whose models are processes that a test may kill."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import msgspec
import yaml

from duologue.app import App, running_app
from duologue.clients.address import realtime_url
from duologue.core.errors import ReplicaLost
from duologue.core.fence import SESSION_LANE, Fence
from duologue.engines.payloads import (
    AudioChunk,
    ChatMessage,
    ChatRequest,
    DecodeSpeech,
    Payload,
    SpeakText,
)
from duologue.engines.pipeline import Pipeline, StageSpec
from duologue.engines.pools.stage_pool import StageStats
from duologue.engines.ports import Outcome, Request
from duologue.engines.settings import EngineSettings
from duologue.gateway.http.settings import HttpSettings
from duologue.gateway.settings import GatewaySettings
from duologue.sessions.settings import SessionSettings
from duologue.settings import ModelSettings, Settings
from tests.patience import PATIENCE_S
from tests.unit.engines.engine_port_contract import Listener

ROOT = Path(__file__).parents[2]
RUNNERS = {"asr": "RECOGNISER", "llm": "WRITER", "tts": "VOICE"}
MARK = "STAGE_UNDER_TEST"
"""Environment variable that tells the workers apart."""

PROBES: Mapping[str, Payload] = {
    "vad": AudioChunk(bytes(640), 16_000),
    "asr": DecodeSpeech("final", 0),
    "llm": ChatRequest((ChatMessage("user", "hello"),), max_tokens=9),
    "tts": SpeakText("hello", 5),
}


class Desk(asyncio.Protocol):
    """Lets each thing go wrong once, and knows which models have begun to do what they should not.

    A protocol that serves all connections: each asks one question.
    """

    def __init__(self) -> None:
        self.asked: list[str] = []
        self._news = asyncio.Event()
        self._transport: asyncio.WriteTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.WriteTransport, transport)

    def data_received(self, data: bytes) -> None:
        assert self._transport is not None
        order = data.decode()
        self._transport.write(b"n" if order in self.asked else b"y")
        self.asked.append(order)
        self._news.set()

    async def until(self, order: str) -> None:
        """Wait until a model has come to the place where it goes wrong."""
        async with asyncio.timeout(PATIENCE_S):
            while order not in self.asked:
                self._news.clear()
                await self._news.wait()


class Gateway:
    """The server, and what a test may do to its workers."""

    def __init__(self, app: App) -> None:
        self.app = app
        self.url = realtime_url(app.url)

    def pid(self, stage: str) -> int:
        """The process of a stage's worker."""
        mark = f"{MARK}={stage}".encode()
        (found,) = [pid for pid in children() if mark in environment(pid)]
        return found

    def kill(self, *stages: str, sig: signal.Signals = signal.SIGKILL) -> None:
        """Kill the workers of stages, all at once."""
        for pid in [self.pid(stage) for stage in stages]:
            os.kill(pid, sig)

    def stats(self, stage: str) -> StageStats:
        """A look at a stage."""
        (found,) = [each for each in self.app.engine.stats().stages if each.stage == stage]
        return found


class FaultyGateway(Gateway):
    """With scripted models, which do wrong what they are told to."""

    def __init__(self, app: App, desk: Desk, folder: Path) -> None:
        super().__init__(app)
        self.desk = desk
        self._folder = folder
        self._probes = 0

    def uninstall(self, stage: str) -> None:
        """From now on the worker of a stage cannot be started."""
        _absent(self._folder, stage).touch()

    def install(self, stage: str) -> None:
        """It can be started again."""
        _absent(self._folder, stage).unlink()

    async def works(self, stage: str) -> None:
        """Wait until a stage has answered somebody who comes now.

        It then has answered all cancels that were sent before.
        """
        async with asyncio.timeout(PATIENCE_S):
            while not await self._probe(stage):
                pass

    async def _probe(self, stage: str) -> bool:
        self._probes += 1
        listener = Listener()
        name = f"probe{self._probes}"
        fence = Fence("probe", SESSION_LANE, 0)
        try:
            self.app.engine.submit(Request(name, stage, fence, first=PROBES[stage]), listener)
        except ReplicaLost:
            await asyncio.sleep(0.01)  # nothing tells when a worker that failed to start is back
            return False
        while not listener.ends(name):
            listener.news.clear()
            await listener.news.wait()
        return listener.ends(name)[0].outcome is Outcome.COMPLETED


def children() -> list[int]:
    """Processes that this one has started, and that are not over."""
    listed = Path(f"/proc/self/task/{os.getpid()}/children").read_text()
    return [int(pid) for pid in listed.split()]


def environment(pid: int) -> Sequence[bytes]:
    """What a process was started with; nothing where it is dead."""
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return ()


@asynccontextmanager
async def faulty_gateway(
    folder: Path,
    engine: EngineSettings,
    sessions: SessionSettings,
    *,
    max_jobs: int = 16,
    http: HttpSettings | None = None,
) -> AsyncIterator[FaultyGateway]:
    """Run the server, and check at its end that no work was left in it.

    Args:
        folder: An empty one that is on the search path of this process: the models are found in
            it as those of an installed package are.
        engine: Without its pipelines.
        max_jobs: Slots of each stage.
    """
    desk = Desk()
    loop = asyncio.get_running_loop()
    door = await loop.create_unix_server(lambda: desk, folder / "desk")
    before = children()
    try:
        async with running_app(_settings(folder, engine, sessions, max_jobs, http)) as app:
            gateway = FaultyGateway(app, desk, folder)
            yield gateway
            await app.sessions.wait_empty(PATIENCE_S)
            for stage in PROBES:
                await gateway.works(stage)
            stats = app.engine.stats()
            assert stats.requests == 0
            assert [(stage.busy, stage.queued) for stage in stats.stages] == [(0, 0)] * 4
            assert sum(stage.input_bytes for stage in stats.stages) == 0
    finally:
        door.close()
    assert children() == before, "no process is left behind"


def install_models(folder: Path) -> None:
    """Make a package of the scripted models, as far as finding them is concerned."""
    metadata = folder / "scripted_models-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: scripted-models\nVersion: 1\n")
    lines = [f"{name} = tests.faults.scripted_models:{name}" for name in RUNNERS.values()]
    (metadata / "entry_points.txt").write_text("\n".join(("[duologue.runners]", *lines, "")))


def _settings(
    folder: Path,
    engine: EngineSettings,
    sessions: SessionSettings,
    max_jobs: int,
    http: HttpSettings | None,
) -> Settings:
    files = tuple(_pipeline_file(folder, stage, max_jobs) for stage in PROBES)
    return Settings(
        # Speech is made little ahead of what was sent, and that little ahead of what was heard.
        models=(ModelSettings(name="m", plugin="cascaded", options={"speech_credit_ms": 200}),),
        engine=engine.model_copy(update={"pipelines": (), "pipeline_files": files}),
        gateway=GatewaySettings(port=0, drain_timeout_s=0, http=http or HttpSettings()),
        sessions=sessions,
    )


def _absent(folder: Path, stage: str) -> Path:
    return folder / f"{stage}.absent"


def _pipeline_file(folder: Path, stage: str, max_jobs: int) -> Path:
    env = {"PYTHONPATH": f"{folder}:{ROOT}"}
    runner = RUNNERS.get(stage, "energy_vad")
    settings = {
        "stage": stage,
        "desk": str(folder / "desk"),
        "absent": str(_absent(folder, stage)),
    }
    if stage == "vad":
        settings = {}
    spec = StageSpec(name=stage, runner=runner, max_jobs=max_jobs, env=env, settings=settings)
    return write_pipeline(folder, spec)


def pipeline_files(folder: Path, *stages: str) -> list[str]:
    """Write pipelines that need no desk: ``vad``, which hears loudness, and ``scripted`` tones."""
    runners = {"vad": "energy_vad", "scripted": "tone"}
    env = {"PYTHONPATH": f"{folder}:{ROOT}"}
    specs = [StageSpec(name=each, runner=runners[each], max_jobs=64, env=env) for each in stages]
    return [str(write_pipeline(folder, spec)) for spec in specs]


def write_pipeline(folder: Path, stage: StageSpec) -> Path:
    """Write the file of a pipeline of one stage, whose workers can be told apart."""
    marked = msgspec.structs.replace(stage, env={**stage.env, MARK: stage.name})
    pipeline = Pipeline(name=stage.name, stages=(marked,))
    path = folder / f"{stage.name}.yaml"
    path.write_text(yaml.safe_dump(msgspec.to_builtins(pipeline)))
    return path
