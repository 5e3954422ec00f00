"""A speech model is one module and one pipeline file; routes, streams and stages are there."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from duologue.codecs.pcm import float_to_pcm
from duologue.engines.settings import EngineSettings
from duologue.gateway.settings import GatewaySettings
from duologue.settings import ModelSettings, Settings
from tests.fakes.media_gateway import API_KEY, MediaGateway, media_gateway
from tests.fakes.speech_model import codes_of, whole

FUSED = """
name: speller
speech: {voices: [anna, bert]}
stages:
  - name: speller
    runner: tests.fakes.spelling_voice:VOICE
    executor: inline
    max_jobs: 4
    settings: {folder: none, slots: 4}
"""
TWO_STAGES = """
name: speller
speech: {voices: [anna, bert]}
stages:
  - name: talker
    runner: tests.fakes.spelling_voice:VOICE
    executor: inline
    edge: sounded_ahead
    credit: 4
    max_jobs: 4
    settings: {folder: none, part: talker, slots: 4, first_audio: true}
  - name: codec
    runner: tests.fakes.spelling_voice:VOICE
    executor: inline
    max_jobs: 4
    settings: {folder: none, part: codec, slots: 4}
"""
TEXT = "Hello there."


@pytest.fixture(params=[FUSED, TWO_STAGES], ids=["fused", "two stages"])
async def gateway(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[MediaGateway]:
    path = tmp_path / "speller.yaml"
    path.write_text(request.param)
    settings = Settings(
        models=(ModelSettings(name="echo", plugin="echo"),),
        engine=EngineSettings(pipelines=(), pipeline_files=(path,)),
        gateway=GatewaySettings(port=0, drain_timeout_s=0, api_keys=(API_KEY,)),
    )
    async with media_gateway(settings) as made:
        yield made


async def test_it_speaks_over_http(gateway: MediaGateway) -> None:
    asked = {"model": "speller", "input": TEXT, "response_format": "pcm"}
    async with gateway.http.post("/v1/audio/speech", json=asked) as answer:
        assert answer.status == 200
        assert await answer.read() == float_to_pcm(whole(codes_of(TEXT)))
    async with gateway.http.post("/v1/audio/speech", json={**asked, "input": "bad."}) as answer:
        assert answer.status == 500


async def test_it_speaks_while_text_comes_in(gateway: MediaGateway) -> None:
    pcm = b""
    async with gateway.http.ws_connect("/v1/audio/speech/stream") as socket:
        await socket.send_json({"type": "session.config", "model": "speller", "voice": "bert"})
        await socket.send_json({"type": "input.text", "text": TEXT})
        await socket.send_json({"type": "session.close"})
        async for message in socket:
            if isinstance(message.data, bytes):
                pcm += message.data
            else:
                assert json.loads(message.data)["type"] != "error"
    assert pcm == float_to_pcm(whole(codes_of(TEXT)))
