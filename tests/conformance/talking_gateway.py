"""A real gateway on a free port that hears beeps as words and answers with tones.

The models are those of the fault tests, on their best behaviour and in this process.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec
import yaml

from duologue.app import App, running_app
from duologue.engines.pipeline import Pipeline, StageSpec
from duologue.engines.settings import EngineSettings
from duologue.gateway.settings import GatewaySettings
from duologue.sessions.settings import SessionSettings
from duologue.settings import ModelSettings, Settings
from tests.conformance.sure_listener import install_listener
from tests.fakes.edged_gateway import edged_gateway
from tests.faults.faulty_gateway import RUNNERS, install_models
from tests.patience import PATIENCE_S

STAGES = {"vad": "energy_vad", "end_of_turn": "LISTENER", **RUNNERS}
"""Runners of the stages that make a call."""

EDGES = int(os.environ.get("TEST_EDGES", "0"))

API_KEY = "sesame"
MODEL = "duologue"


@dataclass(frozen=True)
class TalkingGateway:
    """The server."""

    app: App

    @property
    def port(self) -> int:
        return int(self.app.url.rpartition(":")[2])

    @property
    def http_url(self) -> str:
        """What OpenAI's clients call the base URL."""
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def ws_url(self) -> str:
        return f"ws://127.0.0.1:{self.port}/v1/realtime"


@asynccontextmanager
async def talking_gateway(settings: Settings) -> AsyncIterator[TalkingGateway]:
    """Run the server, and check at its end that nothing was left in it.

    With TEST_EDGES=N in the environment clients come to a gateway that has its sessions elsewhere,
    and another one than the client before.
    """
    async with _edged(settings) if EDGES else running_app(settings) as app:
        yield TalkingGateway(app)
        await app.sessions.wait_empty(PATIENCE_S)
        assert len(app.sessions) == 0


@asynccontextmanager
async def _edged(settings: Settings) -> AsyncIterator[App]:
    async with edged_gateway(settings, EDGES) as server:
        side, edge = server.host.side, server.edges[-1]
        yield App(
            edge.url,
            edge.gateway.tls,
            side.engine,
            side.sessions,
            side.metrics,
            edge.gateway.paths,
        )


def talking_settings(
    folder: Path,
    *,
    gateway: GatewaySettings | None = None,
    sessions: SessionSettings | None = None,
) -> Settings:
    """Write the models' files.

    Args:
        folder: An empty one that is on the search path of this process.
    """
    install_models(folder)
    install_listener(folder)
    door = gateway or GatewaySettings(api_keys=(API_KEY,))
    return Settings(
        models=(ModelSettings(name=MODEL, plugin="cascaded", options={"voices": ["one", "two"]}),),
        engine=EngineSettings(
            pipelines=(), pipeline_files=tuple(_pipeline_file(folder, name) for name in STAGES)
        ),
        gateway=door.model_copy(update={"port": 0, "drain_timeout_s": 0.0}),
        # Callers that vanish are not waited for, so that what is left can be counted.
        sessions=(sessions or SessionSettings()).model_copy(update={"disconnect_grace_s": 1.0}),
    )


def with_lead(settings: Settings, send_lead_ms: int) -> Settings:
    """Let speech be sent less far ahead of its being heard."""
    sessions = settings.sessions.model_copy(update={"send_lead_ms": send_lead_ms})
    return settings.model_copy(update={"sessions": sessions})


def _pipeline_file(folder: Path, stage: str) -> Path:
    settings = {"stage": stage, "desk": "", "absent": str(folder / "absent")}
    spec = StageSpec(
        name=stage,
        runner=STAGES[stage],
        executor="inline",
        max_jobs=64,
        settings=settings if stage in RUNNERS else {},
    )
    path = folder / f"{stage}.yaml"
    path.write_text(yaml.safe_dump(msgspec.to_builtins(Pipeline(name=stage, stages=(spec,)))))
    return path
