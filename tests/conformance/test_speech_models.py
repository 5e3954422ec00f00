"""OpenAI's SDK has a tiny talker and codec speak, shaped as CSM; and a stream of text is spoken."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import numpy as np
import pytest

from duologue.codecs.pcm import pcm_to_float
from tests.conformance.node_clients import seen_by
from tests.conformance.speech_pipelines import FRAMES, client_of, speech_settings
from tests.fakes.media_gateway import API_KEY, MediaGateway, media_gateway
from tests.patience import until

pytestmark = pytest.mark.speech

TEXT = "Hello there."
"""One clause, of words that are spoken as they are written."""


@pytest.fixture
async def gateway(
    tiny_speech: Callable[[str], Path], tmp_path: Path
) -> AsyncIterator[MediaGateway]:
    async with media_gateway(speech_settings(tmp_path, tiny_speech, "csm")) as made:
        yield made


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
