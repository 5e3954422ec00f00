"""Plain requests through a gateway in a process of its own: the work is done at the host."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.conformance.talking_gateway import API_KEY
from tests.fakes.chat_gateway import chat_settings, question
from tests.fakes.edged_gateway import EdgedGateway, edged_gateway
from tests.fakes.link import until

BEARER = {"Authorization": f"Bearer {API_KEY}"}


def client(server: EdgedGateway) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(server.urls[0], headers=BEARER)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


async def test_chat_speech_and_transcription_are_the_hosts_work(folder: Path) -> None:
    async with edged_gateway(chat_settings(folder)) as server, client(server) as http:
        async with http.post("/v1/chat/completions", json=question("hello there")) as answer:
            said = await answer.json()
            assert answer.status == 200
            assert said["choices"][0]["message"]["content"]
        speech = {"input": "Hello there.", "response_format": "wav"}
        async with http.post("/v1/audio/speech", json=speech) as answer:
            assert answer.status == 200
            wav = await answer.read()
            assert len(wav) > 1000
        form = aiohttp.FormData()
        form.add_field("file", wav, filename="speech.wav")
        form.add_field("model", "whisper-1")
        async with http.post("/v1/audio/transcriptions", data=form) as answer:
            assert answer.status == 200
            assert "text" in await answer.json()
        assert server.host.side.engine.stats().requests == 0


async def test_an_answer_that_nobody_wants_any_more_is_stopped_at_the_host(folder: Path) -> None:
    async with edged_gateway(chat_settings(folder)) as server, client(server) as http:
        body: dict[str, Any] = question("go on", model="endless", stream=True)
        answer = await http.post("/v1/chat/completions", json=body)
        await answer.content.readany()
        assert server.host.side.engine.stats().requests == 1
        answer.close()
        await until(lambda: server.host.side.engine.stats().requests == 0)


async def test_what_fails_at_the_host_fails_here_with_its_reason(folder: Path) -> None:
    async with edged_gateway(chat_settings(folder)) as server, client(server) as http:
        body: dict[str, Any] = question("hello", model="failing")
        async with http.post("/v1/chat/completions", json=body) as answer:
            assert answer.status == 502 or answer.status == 500
            assert (await answer.json())["error"]["code"] == "stage_failed"


async def test_work_of_a_gateway_whose_host_is_gone_ends_at_once(folder: Path) -> None:
    async with edged_gateway(chat_settings(folder)) as server, client(server) as http:
        body: dict[str, Any] = question("go on", model="endless")
        async with asyncio.TaskGroup() as group:

            async def ask() -> tuple[int, str]:
                async with http.post("/v1/chat/completions", json=body) as answer:
                    return answer.status, (await answer.json())["error"]["code"]

            asking = group.create_task(ask())
            await until(lambda: server.host.side.engine.stats().requests == 1)
            await server.host.server.stop()
        assert asking.result() == (503, "session_host_lost")
