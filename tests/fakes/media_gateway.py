"""A real gateway that draws in one colour and films in a few, and a plain HTTP client for it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import aiohttp

from duologue.app import App, running_app
from duologue.engines.settings import EngineSettings
from duologue.gateway.http.settings import HttpSettings
from duologue.gateway.settings import GatewaySettings
from duologue.jobs.settings import JobSettings
from duologue.settings import ModelSettings, Settings

API_KEY = "key-of-the-tests"


@dataclass(frozen=True)
class MediaGateway:
    """The server, and a client with a key."""

    app: App
    http: aiohttp.ClientSession

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.app.url.rpartition(':')[2]}"

    @property
    def work(self) -> int:
        """How many requests the engine has."""
        return self.app.engine.stats().requests


def media_settings(
    *, pipelines: tuple[Path, ...] = (), gateway: GatewaySettings | None = None, **more: Any
) -> Settings:
    """Settings of a server whose first model for images and videos is ``sketches``.

    Args:
        pipelines: Files of further ones.
    """
    door = gateway or GatewaySettings(
        port=0, drain_timeout_s=0, api_keys=(API_KEY,), http=HttpSettings()
    )
    return Settings(
        models=(ModelSettings(name="echo", plugin="echo"),),
        engine=EngineSettings(pipelines=("sketches",), pipeline_files=pipelines),
        gateway=door,
        **more,
    )


@asynccontextmanager
async def media_gateway(settings: Settings | None = None) -> AsyncIterator[MediaGateway]:
    with TemporaryDirectory() as folder:
        jobs = JobSettings(folder=Path(folder))
        async with running_app(settings or media_settings(jobs=jobs)) as app:
            url = f"http://127.0.0.1:{app.url.rpartition(':')[2]}"
            key = {"Authorization": f"Bearer {API_KEY}"}
            async with aiohttp.ClientSession(url, headers=key) as client:
                yield MediaGateway(app, client)


async def error_of(answer: aiohttp.ClientResponse) -> tuple[int, str, str | None]:
    """Status, code and field of an answer that is an error."""
    error = (await answer.json())["error"]
    return answer.status, error["code"], error["param"]
