"""C48 over HTTP and WebSocket: a voice that says nothing for a while in the midst of a speech."""

from __future__ import annotations

import base64
import json
import signal
from pathlib import Path

import aiohttp
import pytest

from duologue.clients import DuplexClient
from duologue.engines.settings import EngineSettings
from duologue.gateway.http.settings import HttpSettings
from duologue.protocol.response_events import AudioDelta, ResponseDone
from duologue.sessions.settings import SessionSettings
from tests.faults.faulty_gateway import FaultyGateway, faulty_gateway, install_models

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


async def spoken(call: DuplexClient, gateway: FaultyGateway | None = None) -> bytes:
    """The sound of an answer; with a gateway, its voice stands still until nothing is left."""
    events = call.events()
    await call.say_text("hello long")
    pcm, stopped = b"", False
    async for event in events:
        match event:
            case AudioDelta(delta=piece):
                pcm += piece
                if gateway is not None and not stopped:
                    stopped = True
                    gateway.kill("tts", sig=signal.SIGSTOP)
                    await call.wait_until(lambda: not call.playback.waiting_samples)
                    before = call.playback.gap_samples
                    gateway.kill("tts", sig=signal.SIGCONT)
            case ResponseDone(response=response):
                assert response.status == "completed"
                break
    if gateway is not None:
        assert call.playback.gap_samples > before, "there was a hole"
    return pcm


@pytest.mark.timeout(90)
async def test_c48_a_hole_in_an_answer_ends_no_call_and_its_second_part_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_models(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    async with faulty_gateway(tmp_path, EngineSettings(), SessionSettings()) as gateway:
        url = gateway.app.url
        async with DuplexClient.connect(url, turn_detection=None) as call:
            whole = await spoken(call)
        async with DuplexClient.connect(url, turn_detection=None) as call:
            assert await spoken(call, gateway) == whole
            assert gateway.stats("tts").restarts == 0
            assert await spoken(call) == whole, "the call goes on as before"


def test_c48_a_stream_is_never_silent_for_longer_than_five_seconds() -> None:
    assert HttpSettings().keep_alive_s <= 5
