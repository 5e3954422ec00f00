"""OpenAI's SDK has tiny talkers and codecs speak: shaped as CSM, and as Qwen3-Omni's voice."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from openai import AsyncOpenAI, BadRequestError
from openai.types.chat import ChatCompletionMessageParam

from duologue.codecs.containers.wav import wav_header
from duologue.codecs.pcm import float_to_pcm, pcm_to_float
from duologue.codecs.picture_urls import url_of
from duologue.codecs.pictures import encode
from duologue.engines.payloads import ChatMessage
from duologue.engines.settings import EngineSettings
from duologue.gateway.settings import GatewaySettings
from duologue.settings import ModelSettings, Settings
from tests.conformance.node_clients import seen_by
from tests.fakes.media_gateway import API_KEY, MediaGateway, media_gateway
from tests.patience import until

pytestmark = pytest.mark.speech

TEXT, FRAMES = "Hello there.", 12
"""One clause, of words that are spoken as they are written."""

CSM = """
extends: csm
name: csm
stages:
  - name: csm
    executor: inline
    settings: {{folder: {folder}, device: cpu, dtype: float32, temperature: 0,
               max_frames: 12, threads: 1}}
"""
QWEN = """
extends: qwen3_omni_speech
name: qwen
speech: {{voices: [ethan, chelsie]}}
stages:
  - name: talker
    executor: inline
    settings: {{folder: {folder}, device: cpu, dtype: float32, temperature: 0,
               other_temperature: 0, max_frames: 12, threads: 1}}
  - name: codec
    executor: inline
    settings: {{folder: {folder}, device: cpu, threads: 1}}
"""


OMNI = """
extends: qwen3_omni_chat
name: omni
speech: {{voices: [ethan, chelsie]}}
stages:
  - name: thinker
    executor: inline
    settings: {{folder: {folder}, device: cpu, dtype: float32, threads: 1}}
  - name: talker
    executor: inline
    settings: {{folder: {folder}, device: cpu, dtype: float32, temperature: 0,
               other_temperature: 0, max_frames: 12, threads: 1}}
  - name: codec
    executor: inline
    settings: {{folder: {folder}, device: cpu, threads: 1}}
"""


@pytest.fixture(scope="module")
def files(
    tiny_speech: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, ...]:
    folder = tmp_path_factory.mktemp("pipelines")
    paths = []
    for name, text, model in (
        ("csm", CSM, "csm"),
        ("qwen", QWEN, "qwen3_omni"),
        ("omni", OMNI, "qwen3_omni"),
    ):
        paths.append(folder / f"{name}.yaml")
        paths[-1].write_text(text.format(folder=tiny_speech(model)))
    return tuple(paths)


@pytest.fixture
async def gateway(files: tuple[Path, ...]) -> AsyncIterator[MediaGateway]:
    settings = Settings(
        models=(ModelSettings(name="echo", plugin="echo"),),
        engine=EngineSettings(pipelines=(), pipeline_files=files),
        gateway=GatewaySettings(port=0, drain_timeout_s=0, api_keys=(API_KEY,)),
    )
    async with media_gateway(settings) as made:
        yield made


def client_of(gateway: MediaGateway) -> AsyncOpenAI:
    return AsyncOpenAI(api_key=API_KEY, base_url=f"{gateway.url}/v1", max_retries=0)


def one_shot(folder: Path) -> np.ndarray:
    """What transformers makes of the text at once."""
    import torch
    from tokenizers import Tokenizer
    from transformers import CsmForConditionalGeneration

    model = CsmForConditionalGeneration.from_pretrained(folder).eval()
    ids = Tokenizer.from_file(str(folder / "tokenizer.json")).encode(f"[1]{TEXT}").ids
    with torch.no_grad():
        made = model.generate(
            torch.tensor([ids]),
            do_sample=False,
            depth_decoder_do_sample=False,
            max_new_tokens=FRAMES,
            output_audio=True,
        )
    sound: np.ndarray = made[0].numpy()
    return sound


async def figures(gateway: MediaGateway) -> dict[str, float]:
    async with gateway.http.get("/metrics") as answer:
        lines = (await answer.text()).splitlines()
    return {
        key: float(value)
        for key, _, value in (line.rpartition(" ") for line in lines if not line.startswith("#"))
    }


async def test_csm_says_to_the_sdk_what_the_library_says(
    gateway: MediaGateway, tiny_speech: Callable[[str], Path]
) -> None:
    async with (
        client_of(gateway) as client,
        client.audio.speech.with_streaming_response.create(
            model="csm", voice="1", input=TEXT, response_format="pcm"
        ) as answer,
    ):
        pcm = b"".join([piece async for piece in answer.iter_bytes(1024)])
    expected = await asyncio.to_thread(one_shot, tiny_speech("csm"))
    np.testing.assert_allclose(pcm_to_float(pcm), expected, atol=2 / 32_000)

    counted = await figures(gateway)
    for figure in ("first_packet", "first_audible"):
        assert counted[f'duologue_speech_{figure}_seconds_count{{pipeline="csm"}}'] == 1
    assert (
        counted['duologue_speech_first_packet_seconds_sum{pipeline="csm"}']
        <= counted['duologue_speech_first_audible_seconds_sum{pipeline="csm"}']
    )


async def test_qwens_voice_speaks_as_a_file_and_as_events(gateway: MediaGateway) -> None:
    async with client_of(gateway) as client:
        whole = await client.audio.speech.create(
            model="qwen", voice="chelsie", input=TEXT, response_format="pcm"
        )
        async with client.audio.speech.with_streaming_response.create(
            model="qwen", voice="alloy", input=TEXT, response_format="wav", stream_format="sse"
        ) as answer:
            lines = [line async for line in answer.iter_lines()]
        with pytest.raises(BadRequestError) as refused:
            await client.audio.speech.create(model="qwen", voice="karl", input=TEXT)
    assert len(whole.content) == 2 * (1920 * FRAMES - 555)
    assert np.abs(pcm_to_float(whole.content)).max() > 0.01
    events = [json.loads(line[6:]) for line in lines if line.startswith("data: ")]
    assert [each["type"] for each in events[-2:]] == ["speech.audio.delta", "speech.audio.done"]
    assert refused.value.param == "voice"


@pytest.mark.node
async def test_the_sdk_for_node_hears_what_the_library_says(
    gateway: MediaGateway, tiny_speech: Callable[[str], Path]
) -> None:
    seen = await seen_by("audio.mjs", f"{gateway.url}/v1", API_KEY, "csm", "1", TEXT)
    expected = await asyncio.to_thread(one_shot, tiny_speech("csm"))
    pcm = base64.b64decode(seen["pcm"])
    np.testing.assert_allclose(pcm_to_float(pcm), expected, atol=2 / 32_000)
    assert base64.b64decode(seen["wav"])[44:] == pcm


async def test_names_of_vendors_mean_the_first_model_that_speaks(gateway: MediaGateway) -> None:
    async with client_of(gateway) as client:
        answer = await client.audio.speech.create(
            model="tts-1", voice="1", input=TEXT, response_format="pcm"
        )
        models = await client.models.list()
    assert len(answer.content) == 2 * 1920 * FRAMES
    cards = {each.id: each.model_dump() for each in models.data}
    assert cards["csm"]["capabilities"] | {"voices": cards["csm"]["voices"]} == {
        "realtime": False,
        "chat": False,
        "speech": True,
        "transcription": False,
        "voices": ["0", "1", "2", "3"],
    }


TALK: list[ChatCompletionMessageParam] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": TEXT},
]
WORDS = 8


async def test_an_answer_is_found_and_said_by_one_pipeline_as_the_library_does(
    gateway: MediaGateway, tiny_speech: Callable[[str], Path]
) -> None:
    from tests.fakes.tiny_speech.omni_judge import sounded, thought, tokenizer

    text, pcm, order = "", b"", []
    async with client_of(gateway) as client:
        stream = await client.chat.completions.create(
            model="omni",
            messages=TALK,
            modalities=["text", "audio"],
            audio={"voice": "ethan", "format": "pcm16"},
            max_completion_tokens=WORDS,
            stream=True,
            stream_options={"include_usage": True},
        )
        async for chunk in stream:
            if chunk.usage is not None:
                usage = chunk.usage
            for choice in chunk.choices:
                audio: Any = choice.delta.to_dict().get("audio") or {}
                text += audio.get("transcript") or ""
                if data := audio.get("data"):
                    pcm += base64.b64decode(data)
                    order.append("sound")
                elif audio.get("transcript"):
                    order.append("text")
    folder = tiny_speech("qwen3_omni")
    talk = (ChatMessage("system", "Be brief."), ChatMessage("user", TEXT))
    ids, found = await asyncio.to_thread(thought, folder, talk, WORDS)
    expected = await asyncio.to_thread(sounded, folder, talk, WORDS, FRAMES)
    assert text == tokenizer(folder).decode(found, skip_special_tokens=True)
    np.testing.assert_allclose(pcm_to_float(pcm), expected, atol=2 / 32_000)
    assert (usage.prompt_tokens, usage.completion_tokens) == (len(ids), WORDS)
    assert order[0] == "text"


async def test_a_model_that_answers_aloud_writes_too_and_does_nothing_else(
    gateway: MediaGateway,
) -> None:
    async with client_of(gateway) as client:
        written = await client.chat.completions.create(
            model="omni", messages=TALK, max_completion_tokens=WORDS
        )
        spoken = await client.chat.completions.create(
            model="omni",
            messages=TALK,
            modalities=["text", "audio"],
            audio={"voice": "alloy", "format": "wav"},
            max_completion_tokens=WORDS,
        )
        with pytest.raises(BadRequestError) as no_speech:
            await client.audio.speech.create(model="omni", voice="ethan", input=TEXT)
        with pytest.raises(BadRequestError) as no_voice:
            await client.chat.completions.create(
                model="omni",
                messages=TALK,
                modalities=["text", "audio"],
                audio={"voice": "karl", "format": "wav"},
            )
        with pytest.raises(BadRequestError) as no_tools:
            await client.chat.completions.create(
                model="omni",
                messages=TALK,
                tools=[{"type": "function", "function": {"name": "look", "parameters": {}}}],
            )
        models = await client.models.list()
    (first,) = spoken.choices
    assert first.message.audio is not None
    assert first.message.audio.transcript == written.choices[0].message.content
    assert len(base64.b64decode(first.message.audio.data)) == 44 + 2 * (1920 * FRAMES - 555)
    refused = [each.value.param for each in (no_speech, no_voice, no_tools)]
    assert refused == ["model", "audio.voice", "tools"]
    card = next(each for each in models.data if each.id == "omni").model_dump()
    assert card["capabilities"]["chat"]
    assert not card["capabilities"]["speech"]
    await until(lambda: gateway.work == 0)


async def test_the_sdk_shows_and_plays_a_model_something(
    gateway: MediaGateway, tiny_speech: Callable[[str], Path]
) -> None:
    from tests.fakes.tiny_speech.omni_judge import answered, tokenizer

    dice = np.random.default_rng(7)
    pixels = dice.integers(0, 255, (64, 96, 3), dtype=np.uint8)
    pcm = float_to_pcm(dice.normal(0, 0.1, 12_000).astype(np.float32))
    wav = base64.b64encode(wav_header(16_000, len(pcm)) + pcm).decode()
    content: list[Any] = [
        {"type": "input_audio", "input_audio": {"data": wav, "format": "wav"}},
        {"type": "image_url", "image_url": {"url": url_of(encode(pixels, "png"))}},
        {"type": "text", "text": "What?"},
    ]
    async with client_of(gateway) as client:
        answer = await client.chat.completions.create(
            model="omni",
            messages=[{"role": "user", "content": content}],
            max_completion_tokens=WORDS,
        )
        with pytest.raises(BadRequestError, match="in writing"):
            await client.chat.completions.create(
                model="omni",
                messages=[{"role": "user", "content": content}],
                modalities=["text", "audio"],
                audio={"voice": "ethan", "format": "wav"},
            )
        models = await client.models.list()
    folder = tiny_speech("qwen3_omni")
    written = (
        "<|im_start|>user\n<|audio_start|><|audio_pad|><|audio_end|>"
        "<|vision_start|><|image_pad|><|vision_end|>What?<|im_end|>\n<|im_start|>assistant\n"
    )
    heard = [pcm_to_float(pcm)]
    length, found = await asyncio.to_thread(answered, folder, written, [pixels], heard, WORDS)
    assert answer.usage is not None
    assert answer.usage.prompt_tokens == length
    expected = tokenizer(folder).decode(found, skip_special_tokens=True)
    assert answer.choices[0].message.content == expected
    card = next(each for each in models.data if each.id == "omni").model_dump()
    assert card["capabilities"]["vision"]


async def test_a_stream_of_text_is_spoken_clause_by_clause(gateway: MediaGateway) -> None:
    async with gateway.http.ws_connect("/v1/audio/speech/stream") as socket:
        await socket.send_json({"type": "session.config", "model": "csm", "voice": "1"})
        await socket.send_json({"type": "input.text", "text": f"{TEXT} And"})
        await socket.send_json({"type": "input.text", "text": " how are you today?"})
        await socket.send_json({"type": "session.close"})
        pcm, marks = b"", []
        async for message in socket:
            if isinstance(message.data, bytes):
                pcm += message.data
                continue
            event = json.loads(message.data)
            assert event["type"] != "error", event
            marks += event.get("marks", ())
    assert len(pcm) == 2 * 2 * 1920 * FRAMES
    assert [each["audio_ms"] for each in marks] == [80 * FRAMES, 2 * 80 * FRAMES]


async def test_a_client_that_hangs_up_stops_the_work(gateway: MediaGateway) -> None:
    answer = await gateway.http.post(
        "/v1/audio/speech",
        json={"model": "csm", "input": "This is a long text. " * 200, "response_format": "pcm"},
    )
    await answer.content.readany()
    answer.close()
    await until(lambda: gateway.work == 0)
