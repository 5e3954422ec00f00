"""OpenAI's SDKs for Python and Node have a tiny Qwen3-Omni speak: its voice, and all of it."""

from __future__ import annotations

import asyncio
import base64
import io
import json
from collections.abc import AsyncIterator, Callable, Iterable
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from openai import AsyncOpenAI, BadRequestError
from openai.types.chat import ChatCompletionFunctionToolParam, ChatCompletionMessageParam

from duologue.codecs.containers.wav import HEADER_BYTES, wav_header
from duologue.codecs.pcm import float_to_pcm, pcm_to_float
from duologue.codecs.picture_urls import url_of
from duologue.codecs.pictures import encode
from duologue.engines.payloads import ChatMessage
from tests.conformance.node_clients import seen_by
from tests.conformance.speech_pipelines import FRAMES, client_of, speech_settings
from tests.fakes.media_gateway import API_KEY, MediaGateway, media_gateway
from tests.patience import until

pytestmark = [pytest.mark.speech, pytest.mark.timeout(120)]

Tiny = Callable[[str], Path]
TEXT = "Hello there."
"""One clause, of words that are spoken as they are written."""

ASKED = "Read this aloud."
SAMPLES, RATE_HZ = 1920 * FRAMES - 555, 24_000
"""What the library's codec makes of so many frames."""

CLOSE = {"atol": 2 / 32_000}
"""The file has 16 bits."""

LOOK: ChatCompletionFunctionToolParam = {
    "type": "function",
    "function": {"name": "look", "description": "Looks.", "parameters": {"type": "object"}},
}


@pytest.fixture(scope="module")
def calling(tiny_speech: Tiny, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint that says a word, then calls a function."""
    from tests.fakes.tiny_speech.omni_script import CALL, scripted

    folder = tmp_path_factory.mktemp("scripted") / "calling"
    return scripted(tiny_speech("qwen3_omni"), folder, ["One", " moment.", *CALL])


@pytest.fixture
async def gateway(tiny_speech: Tiny, calling: Path, tmp_path: Path) -> AsyncIterator[MediaGateway]:
    settings = speech_settings(tmp_path, tiny_speech, "qwen", "omni", calling=calling)
    async with media_gateway(settings) as made:
        yield made


async def said_by_the_library(tiny_speech: Tiny, voice: str) -> np.ndarray:
    from tests.fakes.tiny_speech.omni_judge import voiced

    folder = tiny_speech("qwen3_omni")
    _, sound = await asyncio.to_thread(voiced, folder, ASKED, TEXT, FRAMES, voice)
    return sound


def events_in(lines: Iterable[str]) -> list[dict[str, Any]]:
    return [json.loads(line[6:]) for line in lines if line.startswith("data: ")]


async def streamed(client: AsyncOpenAI, voice: str) -> list[bytes]:
    """The pieces of raw speech, as they come."""
    async with client.audio.speech.with_streaming_response.create(
        model="qwen", voice=voice, input=TEXT, response_format="pcm"
    ) as answer:
        return [piece async for piece in answer.iter_bytes()]


async def test_its_voice_says_to_the_sdk_what_the_library_says(
    gateway: MediaGateway, tiny_speech: Tiny
) -> None:
    async with client_of(gateway) as client:
        pieces = await streamed(client, "chelsie")
        whole = await client.audio.speech.create(
            model="qwen", voice="chelsie", input=TEXT, response_format="wav"
        )
        async with client.audio.speech.with_streaming_response.create(
            model="qwen", voice="chelsie", input=TEXT, response_format="wav", stream_format="sse"
        ) as answer:
            events = events_in([line async for line in answer.iter_lines()])
        together = await asyncio.gather(*(streamed(client, each) for each in ("ethan", "chelsie")))
        with pytest.raises(BadRequestError) as refused:
            await client.audio.speech.create(model="qwen", voice="karl", input=TEXT)
    expected = await said_by_the_library(tiny_speech, "chelsie")
    pcm = b"".join(pieces)
    assert len(expected) == SAMPLES
    np.testing.assert_allclose(pcm_to_float(pcm), expected, **CLOSE)
    assert len(pieces) > 1, "it is sent while it is made"
    assert whole.content[HEADER_BYTES:] == pcm

    kinds = [each["type"] for each in events]
    assert kinds == ["speech.audio.delta"] * (len(kinds) - 1) + ["speech.audio.done"]
    assert len(kinds) > 2
    in_events = b"".join(base64.b64decode(each["audio"]) for each in events[:-1])
    assert in_events[HEADER_BYTES:] == pcm

    for voice, beside in zip(("ethan", "chelsie"), together, strict=True):
        alone = await said_by_the_library(tiny_speech, voice)
        np.testing.assert_allclose(pcm_to_float(b"".join(beside)), alone, **CLOSE)
    assert refused.value.param == "voice"


async def test_its_speech_comes_in_the_format_that_is_asked_for(
    gateway: MediaGateway, tiny_speech: Tiny
) -> None:
    for form in ("mp3", "opus", "aac", "flac"):
        async with client_of(gateway) as client:
            answer = await client.audio.speech.create(
                model="qwen", voice="ethan", input=TEXT, response_format=form
            )
        with av.open(io.BytesIO(answer.content)) as file:
            (stream,) = file.streams.audio
            assert form in stream.codec_context.name
            frames = list(file.decode(stream))
        seconds = sum(each.samples / each.sample_rate for each in frames)
        # Most have frames of a length of their own, and the first of them is silence.
        assert seconds == pytest.approx(SAMPLES / RATE_HZ, abs=0.12)
    samples = np.concatenate([each.to_ndarray().ravel() for each in frames]) / 32_768
    np.testing.assert_allclose(samples, await said_by_the_library(tiny_speech, "ethan"), **CLOSE)


@pytest.mark.node
async def test_its_voice_says_to_the_sdk_for_node_what_the_library_says(
    gateway: MediaGateway, tiny_speech: Tiny
) -> None:
    seen = await seen_by("audio.mjs", f"{gateway.url}/v1", API_KEY, "qwen", "ethan", TEXT)
    pcm = base64.b64decode(seen["pcm"])
    expected = await said_by_the_library(tiny_speech, "ethan")
    np.testing.assert_allclose(pcm_to_float(pcm), expected, **CLOSE)
    assert base64.b64decode(seen["wav"])[HEADER_BYTES:] == pcm
    assert seen["kind"] == "audio/wav"
    assert seen["pieces"] > 1
    events = events_in(seen["events"].splitlines())
    in_events = b"".join(base64.b64decode(each["audio"]) for each in events[:-1])
    assert in_events == pcm
    assert len(events) > 2
    with av.open(io.BytesIO(base64.b64decode(seen["flac"]))) as file:
        assert sum(each.samples for each in file.decode(audio=0)) == SAMPLES
    assert seen["refused"] == [400, "voice"]


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


async def test_a_model_that_answers_aloud_writes_too_and_speaks_no_texts(
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
        with pytest.raises(BadRequestError) as no_force:
            await client.chat.completions.create(
                model="omni", messages=TALK, tools=[LOOK], tool_choice="required"
            )
        models = await client.models.list()
    (first,) = spoken.choices
    assert first.message.audio is not None
    assert first.message.audio.transcript == written.choices[0].message.content
    assert len(base64.b64decode(first.message.audio.data)) == 44 + 2 * (1920 * FRAMES - 555)
    refused = [each.value.param for each in (no_speech, no_voice, no_force)]
    assert refused == ["model", "audio.voice", "tools"]
    card = next(each for each in models.data if each.id == "omni").model_dump()
    assert card["capabilities"]["chat"]
    assert not card["capabilities"]["speech"]
    await until(lambda: gateway.work == 0)


class Shown:
    """A picture and a recording, as SDKs send them, and what the library makes of both."""

    def __init__(self) -> None:
        dice = np.random.default_rng(7)
        self.pixels = dice.integers(0, 255, (64, 96, 3), dtype=np.uint8)
        self.pcm = float_to_pcm(dice.normal(0, 0.1, 12_000).astype(np.float32))
        self.url = url_of(encode(self.pixels, "png"))
        wav = wav_header(16_000, len(self.pcm)) + self.pcm
        self.wav = base64.b64encode(wav).decode()

    def messages(self) -> list[ChatCompletionMessageParam]:
        return [
            {
                "role": "user",
                "content": [
                    {"type": "input_audio", "input_audio": {"data": self.wav, "format": "wav"}},
                    {"type": "image_url", "image_url": {"url": self.url}},
                    {"type": "text", "text": "What?"},
                ],
            }
        ]

    async def answer(self, folder: Path) -> tuple[str, np.ndarray]:
        from tests.fakes.tiny_speech.omni_judge import answered_aloud, tokenizer

        written = (
            "<|im_start|>user\n<|audio_start|><|audio_pad|><|audio_end|><|vision_start|>"
            "<|image_pad|><|vision_end|>What?<|im_end|>\n<|im_start|>assistant\n"
        )
        heard = [pcm_to_float(self.pcm)]
        found, sound = await asyncio.to_thread(
            answered_aloud, folder, written, [self.pixels], heard, WORDS, FRAMES
        )
        return tokenizer(folder).decode(found, skip_special_tokens=True), sound


async def test_what_the_sdk_shows_and_plays_is_answered_aloud_as_the_library_does(
    gateway: MediaGateway, tiny_speech: Tiny
) -> None:
    shown = Shown()
    async with client_of(gateway) as client:
        written = await client.chat.completions.create(
            model="omni", messages=shown.messages(), max_completion_tokens=WORDS
        )
        spoken = await client.chat.completions.create(
            model="omni",
            messages=shown.messages(),
            modalities=["text", "audio"],
            audio={"voice": "ethan", "format": "pcm16"},
            max_completion_tokens=WORDS,
        )
        models = await client.models.list()
    text, sound = await shown.answer(tiny_speech("qwen3_omni"))
    assert written.choices[0].message.content == text
    audio = spoken.choices[0].message.audio
    assert audio is not None
    assert audio.transcript == text
    np.testing.assert_allclose(pcm_to_float(base64.b64decode(audio.data)), sound, **CLOSE)
    card = next(each for each in models.data if each.id == "omni").model_dump()
    assert card["capabilities"]["vision"]


async def test_it_calls_the_functions_of_the_sdk(gateway: MediaGateway) -> None:
    async with client_of(gateway) as client:
        first = await client.chat.completions.create(model="calling", messages=TALK, tools=[LOOK])
        spoken = await client.chat.completions.create(
            model="calling",
            messages=TALK,
            tools=[LOOK],
            modalities=["text", "audio"],
            audio={"voice": "ethan", "format": "pcm16"},
        )
        (call,) = first.choices[0].message.tool_calls or ()
        assert call.type == "function"
        answer: ChatCompletionMessageParam = {"role": "assistant", "tool_calls": [call.to_dict()]}  # type: ignore[list-item]
        result: ChatCompletionMessageParam = {
            "role": "tool",
            "tool_call_id": call.id,
            "content": "a cat",
        }
        after = await client.chat.completions.create(
            model="calling", messages=[*TALK, answer, result]
        )
    assert (call.function.name, call.function.arguments) == ("look", '{"at":"you"}')
    assert first.choices[0].finish_reason == "tool_calls"
    assert first.choices[0].message.content == "One moment."
    message = spoken.choices[0].message
    assert [each.function.name for each in message.tool_calls or ()] == ["look"]  # type: ignore[union-attr]
    assert message.audio is not None
    assert message.audio.transcript == "One moment."
    assert len(base64.b64decode(message.audio.data)) == 2 * SAMPLES
    assert (after.choices[0].message.content or "").startswith("One moment.")


@pytest.mark.node
async def test_the_sdk_for_node_is_answered_aloud_and_called(
    gateway: MediaGateway, tiny_speech: Tiny
) -> None:
    shown = Shown()
    asked = (f"{gateway.url}/v1", API_KEY, "omni", "calling", shown.url, shown.wav, str(WORDS))
    seen = await seen_by("omni.mjs", *asked)
    text, sound = await shown.answer(tiny_speech("qwen3_omni"))
    assert seen["text"] == text
    np.testing.assert_allclose(pcm_to_float(base64.b64decode(seen["pcm"])), sound, **CLOSE)
    assert seen["pieces"] > 1
    assert seen["called"] == ["look", '{"at":"you"}']
    assert seen["after"].startswith("One moment.")
