"""OpenAI's SDK holds a call with a tiny Qwen3-Omni, which hears each turn as it was said."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from openai.resources.realtime.realtime import AsyncRealtimeConnection

from duologue.codecs.pcm import float_to_pcm, pcm_to_float
from duologue.codecs.picture_urls import url_of
from duologue.codecs.pictures import encode
from duologue.protocol.audio_formats import PcmFormat
from duologue.sessions.hearing.input_audio import InputAudio
from duologue.settings import ModelSettings, Settings
from tests.conformance.speech_pipelines import FRAMES, client_of, speech_settings
from tests.fakes.media_gateway import media_gateway
from tests.patience import PATIENCE_S

pytestmark = [pytest.mark.speech, pytest.mark.timeout(120)]

Tiny = Callable[[str], Path]
WORDS = 8
DICE = np.random.default_rng(11)
SAID = float_to_pcm(DICE.normal(0, 0.1, 24_000).astype(np.float32))
"""A second of something at 24 kHz."""

PIXELS = DICE.integers(0, 255, (64, 96, 3), dtype=np.uint8)
PERSONA = "Be brief."
HEARD = "<|audio_start|><|audio_pad|><|audio_end|>"
SEEN = "<|vision_start|><|image_pad|><|vision_end|>"


@asynccontextmanager
async def calling(
    settings: Settings, pipeline: str, **session: Any
) -> AsyncIterator[AsyncRealtimeConnection]:
    """A call whose turns are committed by hand."""
    options = {
        "pipeline": pipeline,
        "voices": ["ethan", "chelsie"],
        "persona": PERSONA,
        "max_output_tokens": WORDS,
    }
    model = ModelSettings(
        name="call", plugin="duologue.duplex_plugins.omni.plugin:create", options=options
    )
    async with (
        media_gateway(with_model(settings, model)) as gateway,
        client_of(gateway) as client,
        client.realtime.connect(model="call") as connection,
    ):
        audio = {"input": {"turn_detection": None}}
        await connection.session.update(session={"type": "realtime", "audio": audio, **session})
        yield connection


def with_model(settings: Settings, model: ModelSettings) -> Settings:
    return settings.model_copy(update={"models": (model,)})


async def say(connection: AsyncRealtimeConnection, pcm: bytes) -> None:
    await connection.input_audio_buffer.append(audio=base64.b64encode(pcm).decode())
    await connection.input_audio_buffer.commit()


async def answer(connection: AsyncRealtimeConnection) -> tuple[str, np.ndarray, Any]:
    """Ask for an answer; returns its transcript, its sound, and what became of it."""
    await connection.response.create()
    text, pcm = "", b""
    async with asyncio.timeout(PATIENCE_S):
        async for event in connection:
            assert event.type != "error", event
            if event.type == "response.output_audio_transcript.delta":
                text += event.delta
            elif event.type == "response.output_audio.delta":
                pcm += base64.b64decode(event.delta)
            elif event.type == "response.done":
                return text, pcm_to_float(pcm), event.response
    raise AssertionError("the call ended")


def heard_of(pcm: bytes) -> np.ndarray:
    """What the session hears of it: 16 kHz."""
    audio = InputAudio(PcmFormat(), 16_000, 10_000)
    audio.append(pcm)
    audio.end_utterance()
    return pcm_to_float(audio.read(0).pcm)


async def by_the_library(
    folder: Path, turns: Sequence[str], pictures: Sequence[np.ndarray], sounds: Sequence[np.ndarray]
) -> tuple[str, np.ndarray]:
    from tests.fakes.tiny_speech.omni_judge import answered_aloud, tokenizer

    written = "".join(f"<|im_start|>{turn}<|im_end|>\n" for turn in turns)
    written = f"{written}<|im_start|>assistant\n"
    found, sound = await asyncio.to_thread(
        answered_aloud, folder, written, pictures, sounds, WORDS, FRAMES
    )
    return tokenizer(folder).decode(found, skip_special_tokens=True), sound


async def test_what_is_said_and_shown_in_a_call_is_answered_as_the_library_does(
    tiny_speech: Tiny, tmp_path: Path
) -> None:
    settings = speech_settings(tmp_path, tiny_speech, "omni")
    async with calling(settings, "omni") as connection:
        await say(connection, SAID)
        first, spoken, done = await answer(connection)
        picture = {"type": "input_image", "image_url": url_of(encode(PIXELS, "png"))}
        item: Any = {"type": "message", "role": "user", "content": [picture]}
        await connection.conversation.item.create(item=item)
        await say(connection, SAID[:24_000])
        second, spoken_then, _ = await answer(connection)
    folder = tiny_speech("qwen3_omni")
    heard = [heard_of(SAID), heard_of(SAID[:24_000])]
    turns = [f"system\n{PERSONA}", f"user\n{HEARD}"]
    text, sound = await by_the_library(folder, turns, [], heard[:1])
    assert first == text
    np.testing.assert_allclose(spoken, sound, atol=2 / 32_000)
    assert done.status == "incomplete", "it was allowed so many words"

    turns += [f"assistant\n{first.strip()}", f"user\n{HEARD}{SEEN}"]
    text, sound = await by_the_library(folder, turns, [PIXELS], heard)
    assert second == text
    np.testing.assert_allclose(spoken_then, sound, atol=2 / 32_000)


async def test_a_function_is_called_in_a_call_and_its_output_answered(
    tiny_speech: Tiny, tmp_path: Path
) -> None:
    from tests.fakes.tiny_speech.omni_script import CALL, scripted

    folder = scripted(tiny_speech("qwen3_omni"), tmp_path / "tiny", ["One", " moment.", *CALL])
    settings = speech_settings(tmp_path, tiny_speech, calling=folder)
    tool = {"type": "function", "name": "look", "parameters": {"type": "object"}}
    async with calling(settings, "calling", tools=[tool]) as connection:
        await say(connection, SAID)
        text, spoken, done = await answer(connection)
        (call,) = (each for each in done.output if each.type == "function_call")
        output: Any = {"type": "function_call_output", "call_id": call.call_id, "output": "a cat"}
        await connection.conversation.item.create(item=output)
        again, _, after = await answer(connection)
    assert text == again == "One moment."
    assert len(spoken) == 1920 * FRAMES - 555
    assert (call.name, json.loads(call.arguments)) == ("look", {"at": "you"})
    assert done.status == after.status == "completed"
