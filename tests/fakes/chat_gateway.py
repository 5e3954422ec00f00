"""A real gateway with models that chat, and a plain HTTP client for it.

``duologue`` hears beeps, repeats words and answers in tones; ``caller`` calls what functions it
is given; ``mute`` writes and has no voice; ``endless`` writes until somebody stops it.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import yaml
from pydantic import SecretStr

from duologue.app import App
from duologue.engines.pipeline import Pipeline, StageSpec
from duologue.gateway.http.settings import HttpSettings
from duologue.gateway.settings import GatewaySettings
from duologue.jobs.settings import JobSettings
from duologue.settings import ModelSettings, Settings
from tests.conformance.talking_gateway import API_KEY, talking_gateway, talking_settings

ADMIN_KEY = "key-of-who-runs-it"
WEATHER = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}
CLOCK = {"type": "function", "function": {"name": "clock"}}
PLACE = '{"place":"Paris"}'

_CALLS = [{"name": "weather", "arguments": PLACE}, {"name": "clock"}]
_SCRIPTS: dict[str, dict[str, Any]] = {
    "calling": {"calls": _CALLS},
    "repeating": {},
    "endless": {"reply": "word " * 100_000},
    "failing": {"reply": "one two three four", "fault": {"kind": "raise", "at_chunk": 2}},
}


def chat_settings(folder: Path, http: HttpSettings | None = None) -> Settings:
    """Write the models' files.

    Args:
        folder: An empty one that is on the search path of this process.
    """
    door = GatewaySettings(api_keys=(API_KEY,), http=http or HttpSettings())
    settings = talking_settings(folder, gateway=door)
    files = tuple(_script_file(folder, name) for name in _SCRIPTS)
    engine = settings.engine.model_copy(
        update={"pipeline_files": (*settings.engine.pipeline_files, *files)}
    )
    models = (
        *settings.models,
        _model("caller", "calling", "tts"),
        _model("mute", "repeating", None),
        _model("endless", "endless", "tts"),
        _model("failing", "failing", None),
        ModelSettings(name="echo", plugin="echo"),
    )
    return settings.model_copy(update={"engine": engine, "models": models})


def full_settings(folder: Path, http: HttpSettings | None = None) -> Settings:
    """The same with a model for pictures and sounds, and an admin key: every route there is."""
    settings = chat_settings(folder, http)
    return settings.model_copy(
        update={
            "engine": settings.engine.model_copy(update={"pipelines": ("sketches",)}),
            "gateway": settings.gateway.model_copy(update={"admin_key": SecretStr(ADMIN_KEY)}),
            "jobs": JobSettings(folder=folder / "jobs"),
        }
    )


@dataclass(frozen=True)
class ChatGateway:
    """The server, and a client with a key."""

    app: App
    http: aiohttp.ClientSession
    url: str
    """What OpenAI's clients call the base URL."""

    @property
    def work(self) -> int:
        """How many requests the engine has."""
        return self.app.engine.stats().requests

    async def ask(self, text: str = "hello", **fields: Any) -> tuple[int, dict[str, Any]]:
        """Ask; returns the status and the JSON."""
        async with self.http.post("/v1/chat/completions", json=question(text, **fields)) as answer:
            return answer.status, await answer.json()

    async def stream(self, text: str = "hello", **fields: Any) -> list[dict[str, Any]]:
        """Ask; returns all chunks of an answer that ends as it should."""
        body = question(text, stream=True, **fields)
        async with self.http.post("/v1/chat/completions", json=body) as answer:
            assert answer.status == 200, await answer.text()
            assert answer.content_type == "text/event-stream"
            *events, last, rest = (await answer.text()).split("\n\n")
        assert (last, rest) == ("data: [DONE]", "")
        return [json.loads(event.removeprefix("data: ")) for event in events]


def question(text: str, **fields: Any) -> dict[str, Any]:
    """Return the body of a request."""
    return {"messages": [{"role": "user", "content": text}], **fields}


@asynccontextmanager
async def chat_gateway(settings: Settings) -> AsyncIterator[ChatGateway]:
    """Run the server."""
    async with talking_gateway(settings) as server:
        base = f"http://127.0.0.1:{server.port}"
        headers = {"Authorization": f"Bearer {API_KEY}"}
        async with aiohttp.ClientSession(base, headers=headers) as client:
            yield ChatGateway(server.app, client, server.http_url)


def _model(name: str, chat: str, speech: str | None) -> ModelSettings:
    options = {"chat_pipeline": chat, "speech_pipeline": speech}
    return ModelSettings(name=name, plugin="scripted", options=options)


def _script_file(folder: Path, name: str) -> Path:
    stage = StageSpec(
        name=name, runner="script", executor="inline", max_jobs=64, settings=_SCRIPTS[name]
    )
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump(msgspec.to_builtins(Pipeline(name=name, stages=(stage,)))))
    return path
