"""A real gateway that speaks in tones and hears beeps, and a plain HTTP client for it."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

from duologue.app import App
from duologue.gateway.http.settings import HttpSettings
from duologue.gateway.settings import GatewaySettings
from tests.conformance.talking_gateway import API_KEY, talking_gateway, talking_settings

MS_PER_CHARACTER = 10
"""How long the voice sounds for each."""


@dataclass(frozen=True)
class SpeechGateway:
    """The server, and a client with a key."""

    app: App
    http: aiohttp.ClientSession
    answers: list[aiohttp.ClientResponse] = field(default_factory=list)

    @property
    def port(self) -> int:
        return int(self.app.url.rpartition(":")[2])

    @property
    def work(self) -> int:
        """How many requests the engine has."""
        return self.app.engine.stats().requests

    async def speak(self, text: str = "Hello there.", **how: Any) -> aiohttp.ClientResponse:
        """Ask for speech; the answer's body is not read."""
        answer = await self.http.post("/v1/audio/speech", json={"input": text, **how})
        self.answers.append(answer)
        return answer

    async def hear(
        self, file: bytes | None, *fields: tuple[str, str], name: str = "file", **how: str
    ) -> aiohttp.ClientResponse:
        """Ask for a transcription; ``how`` may name the ``route``."""
        route = how.pop("route", "transcriptions")
        form = aiohttp.FormData(default_to_multipart=True)
        if file is not None:
            form.add_field(name, io.BytesIO(file), filename="speech.wav")
        for field_name, value in (*how.items(), *fields):
            form.add_field(field_name, value)
        if not (how or fields):
            form.add_field("model", "whisper-1")
        answer = await self.http.post(f"/v1/audio/{route}", data=form)
        self.answers.append(answer)
        return answer


@asynccontextmanager
async def speech_gateway(
    folder: Path, http: HttpSettings | None = None
) -> AsyncIterator[SpeechGateway]:
    """Run the server.

    Args:
        folder: An empty one that is on the search path of this process.
    """
    door = GatewaySettings(api_keys=(API_KEY,), http=http or HttpSettings())
    async with (
        talking_gateway(talking_settings(folder, gateway=door)) as server,
        aiohttp.ClientSession(
            f"http://127.0.0.1:{server.port}", headers={"Authorization": f"Bearer {API_KEY}"}
        ) as client,
    ):
        gateway = SpeechGateway(server.app, client)
        yield gateway
        for answer in gateway.answers:
            answer.close()


async def error_of(answer: aiohttp.ClientResponse) -> tuple[int, str, str | None]:
    """Status, code and field of an answer that is an error."""
    error = (await answer.json())["error"]
    assert error["message"]
    return answer.status, error["code"], error["param"]
