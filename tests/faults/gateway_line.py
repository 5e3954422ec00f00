"""A line to a gateway whose answers are scripted, and what must be left when it is gone."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from duologue.app import App, running_app
from duologue.engines.settings import EngineSettings
from duologue.gateway.settings import GatewaySettings
from duologue.sessions.settings import ListeningSettings, SessionSettings
from duologue.settings import ModelSettings, Settings
from tests.patience import PATIENCE_S, until
from tests.unit.gateway.raw_websocket import RawWebSocket, connected

PATH = "/v1/realtime"
LONG, SHORT, CALLING = "long", "short", "calling"
"""Models: half a minute of tones, a fifth of a second, and one that first calls a function."""

FUNCTION = {"type": "function", "name": "look", "parameters": {"type": "object"}}
SAMPLES_PER_MS = 24
LOUD = b"\x00\x20"
UPDATE = {
    "type": "session.update",
    "session": {"type": "realtime", "audio": {"input": {"turn_detection": None}}},
}
COMMIT = {"type": "input_audio_buffer.commit"}
CREATE = {"type": "response.create"}


def append(duration_ms: int) -> dict[str, Any]:
    audio = base64.b64encode(LOUD * (SAMPLES_PER_MS * duration_ms)).decode()
    return {"type": "input_audio_buffer.append", "audio": audio}


def line_settings(
    gateway: GatewaySettings | None = None, sessions: SessionSettings | None = None
) -> Settings:
    """A voice detector that hears loudness, and two models that say tones."""
    listening = ListeningSettings(vad="vad_energy", end_of_turn=None, asr=None)
    calls = [{"name": FUNCTION["name"], "arguments": "{}"}]
    scripts: dict[str, dict[str, Any]] = {
        SHORT: {"lines": ["Yes"]},
        LONG: {"lines": ["and so on " * 50]},
        CALLING: {"turns": [{"line": "One moment.", "calls": calls}, {"line": "{outputs}"}]},
    }
    return Settings(
        models=tuple(
            ModelSettings(name=name, plugin="scripted", options=script)
            for name, script in scripts.items()
        ),
        engine=EngineSettings(pipelines=("scripted", "vad_energy")),
        gateway=(gateway or GatewaySettings()).model_copy(
            update={"port": 0, "drain_timeout_s": 0.0}
        ),
        sessions=(sessions or SessionSettings()).model_copy(update={"listening": listening}),
    )


class Server:
    """A gateway, and a look at what is going on in it."""

    def __init__(self, app: App) -> None:
        self.app = app
        self.port = int(app.url.rpartition(":")[2])

    async def is_clean(self) -> None:
        """Wait until no call is left, and check that none has left anything."""
        await self.app.sessions.wait_empty(PATIENCE_S)
        await until(lambda: not self.app.engine.stats().requests)
        assert len(self.app.sessions) == 0
        stats = self.app.engine.stats()
        assert [(stage.busy, stage.queued) for stage in stats.stages] == [(0, 0)] * 3

    async def takes_a_call(self) -> None:
        """Check that a call is answered."""
        async with call(self.port) as line:
            await take_turn(line)

    async def is_backed_up(self) -> None:
        """Wait until a call cannot get rid of what it has to say."""
        await until(lambda: any(held > 50_000 for held in self.held_bytes()))

    def held_bytes(self) -> list[int]:
        """What waits to be sent, by session."""
        sessions = self.app.sessions._sessions.values()
        return [session.machine.speaking.buffer.held_bytes for session in sessions]


@asynccontextmanager
async def serving(settings: Settings) -> AsyncIterator[Server]:
    async with running_app(settings) as app:
        yield Server(app)


@asynccontextmanager
async def call(
    port: int, model: str = SHORT, *, is_deaf: bool = False
) -> AsyncIterator[RawWebSocket]:
    """Hold a call without turn detection."""
    async with connected(port, is_deaf=is_deaf) as line:
        await line.upgrade(f"{PATH}?model={model}")
        line.send_event(UPDATE)
        if not is_deaf:
            await line.until("session.updated")
        yield line


async def take_turn(line: RawWebSocket) -> list[dict[str, Any]]:
    """Say something and be answered; all that comes until then."""
    for event in (append(600), COMMIT, CREATE):
        line.send_event(event)
    events = await line.until("rate_limits.updated")
    assert events[-2]["response"]["status"] == "completed", events[-2]
    assert [event for event in events if event["type"] == "error"] == []
    return events
