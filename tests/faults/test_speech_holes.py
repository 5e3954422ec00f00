"""C48 over HTTP: a model that says nothing for a while in the midst of a speech."""

from __future__ import annotations

import base64
import json
import signal
from pathlib import Path

import aiohttp
import pytest

from duologue.engines.settings import EngineSettings
from duologue.gateway.http.settings import HttpSettings
from duologue.sessions.settings import SessionSettings
from tests.faults.faulty_gateway import faulty_gateway, install_models

TEXT = "This is a sentence that takes its time. " * 20
COMMENT = b": keep-alive\n\n"


def sound_in(events: bytes) -> bytes:
    """The sound of a stream of events."""
    lines = [line for line in events.splitlines() if line.startswith(b"data: {")]
    told = [json.loads(line.removeprefix(b"data: ")) for line in lines]
    assert told[-1]["type"] == "speech.audio.done", told[-1]
    return b"".join(base64.b64decode(each.get("audio", "")) for each in told)


async def test_c48_a_hole_in_a_speech_is_filled_with_comments_and_its_second_part_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_models(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    http = HttpSettings(keep_alive_s=0.2)
    ask = {"input": TEXT, "response_format": "pcm", "stream_format": "sse"}
    async with (
        faulty_gateway(tmp_path, EngineSettings(), SessionSettings(), http=http) as gateway,
        aiohttp.ClientSession(gateway.app.url) as client,
    ):
        async with client.post("/v1/audio/speech", json=ask) as answer:
            whole = sound_in(await answer.read())
        async with client.post("/v1/audio/speech", json=ask) as answer:
            said = await answer.content.readuntil(b"\n\n")
            gateway.kill("tts", sig=signal.SIGSTOP)
            while said.count(COMMENT) < 5:
                said += await answer.content.readuntil(b"\n\n")
            gateway.kill("tts", sig=signal.SIGCONT)
            said += await answer.read()
        assert sound_in(said) == whole
        assert gateway.stats("tts").restarts == 0


def test_c48_a_stream_is_never_silent_for_longer_than_five_seconds() -> None:
    assert HttpSettings().keep_alive_s <= 5
