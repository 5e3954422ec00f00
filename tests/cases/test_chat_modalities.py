"""C77: an answer consists of exactly what was asked for; C10: a stage that raises, over HTTP."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.fakes.chat_gateway import ChatGateway, chat_gateway, chat_settings

TEXT = "Well, you said hello."
TEXT_ONLY, AUDIO_ONLY, BOTH = ["text"], ["audio"], ["text", "audio"]


@pytest_asyncio.fixture
async def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ChatGateway]:
    monkeypatch.syspath_prepend(tmp_path)
    async with chat_gateway(chat_settings(tmp_path)) as gateway:
        yield gateway


def speech_s(pcm: bytes) -> float:
    return len(pcm) / 2 / 24_000


def parts(chunks: list[dict[str, Any]]) -> dict[str, Any]:
    """What the deltas of an answer add up to."""
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    audio = [delta["audio"] for delta in deltas if "audio" in delta]
    return {
        "content": "".join(delta.get("content") or "" for delta in deltas),
        "transcript": "".join(each.get("transcript", "") for each in audio),
        "pcm": b"".join(base64.b64decode(each.get("data", "")) for each in audio),
        "ids": [each["id"] for each in audio if "id" in each],
        "expires": [each["expires_at"] for each in audio if "expires_at" in each],
    }


@pytest.mark.parametrize("modalities", [None, TEXT_ONLY])
async def test_c77_text_alone(server: ChatGateway, modalities: list[str] | None) -> None:
    _, answer = await server.ask(modalities=modalities)
    message = answer["choices"][0]["message"]
    assert message == {"role": "assistant", "content": TEXT, "refusal": None}
    streamed = parts(await server.stream(modalities=modalities))
    assert streamed["content"] == TEXT
    assert (streamed["ids"], streamed["pcm"]) == ([], b"")


@pytest.mark.parametrize(("modalities", "transcript"), [(BOTH, TEXT), (AUDIO_ONLY, "")])
async def test_c77_speech_with_and_without_text(
    server: ChatGateway, modalities: list[str], transcript: str
) -> None:
    how = {"modalities": modalities, "audio": {"voice": "alloy", "format": "pcm16"}}
    _, answer = await server.ask(**how)
    message = answer["choices"][0]["message"]
    assert message["content"] is None
    assert message["audio"]["transcript"] == transcript
    whole = base64.b64decode(message["audio"]["data"])
    assert speech_s(whole) == pytest.approx(0.01 * len(TEXT), abs=0.05)
    streamed = parts(await server.stream(**how))
    assert streamed["content"] == ""
    assert streamed["transcript"] == transcript
    assert streamed["pcm"] == whole
    assert len(streamed["ids"]) == len(streamed["expires"]) == 1


@pytest.mark.parametrize("audio_format", ["wav", "mp3", "flac", "opus", "aac"])
async def test_c77_files_are_for_answers_that_are_not_streamed(
    server: ChatGateway, audio_format: str
) -> None:
    how = {"modalities": BOTH, "audio": {"voice": "alloy", "format": audio_format}}
    status, answer = await server.ask(**how)
    assert status == 200
    assert len(base64.b64decode(answer["choices"][0]["message"]["audio"]["data"])) > 200
    status, answer = await server.ask(**how, stream=True)
    assert status == 400
    assert answer["error"]["param"] == "audio.format"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("modalities", [AUDIO_ONLY, BOTH])
async def test_c77_a_model_without_a_voice_does_not_write_instead(
    server: ChatGateway, modalities: list[str], stream: bool
) -> None:
    status, answer = await server.ask(model="mute", modalities=modalities, stream=stream)
    assert status == 400
    assert answer["error"]["code"] == "unsupported"
    assert "cannot speak" in answer["error"]["message"]


async def test_c10_a_stage_that_raises_fails_its_own_request_alone(server: ChatGateway) -> None:
    alone = await server.stream("hello again")
    async with asyncio.TaskGroup() as group:
        beside = group.create_task(server.stream("hello again"))
        failing = group.create_task(server.ask(model="failing"))
    status, answer = failing.result()
    assert (status, answer["error"]["code"]) == (500, "stage_failed")
    assert parts(beside.result()) == parts(alone)
    assert (await server.ask(model="mute"))[0] == 200
    assert server.work == 0
