"""C73: speech as a file, and clients that do not wait for its end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio

from duologue.codecs.containers.wav import HEADER_BYTES, wav_header
from tests.fakes.speech_gateway import SpeechGateway, speech_gateway
from tests.patience import until

TEXT = "This is a sentence that takes its time. " * 40


@pytest_asyncio.fixture
async def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[SpeechGateway]:
    monkeypatch.syspath_prepend(tmp_path)
    async with speech_gateway(tmp_path) as gateway:
        yield gateway


async def hang_up_after(answer: aiohttp.ClientResponse, data: int) -> None:
    if data:
        await answer.content.readexactly(data)
    answer.close()


async def test_c73_a_streamed_wav_has_one_header_and_as_much_pcm_as_pcm_has(
    server: SpeechGateway,
) -> None:
    wav = await (await server.speak(TEXT, response_format="wav")).read()
    pcm = await (await server.speak(TEXT, response_format="pcm")).read()
    whole = await (await server.speak(TEXT, response_format="wav", stream=False)).read()

    assert wav == wav_header(24_000) + pcm
    assert whole == wav_header(24_000, len(pcm)) + pcm
    assert wav.count(b"RIFF") == whole.count(b"RIFF") == 1


@pytest.mark.parametrize("form", [{"stream_format": "audio"}, {"stream_format": "sse"}])
@pytest.mark.parametrize("data", [0, HEADER_BYTES + 1, 200_000])
async def test_c73_a_client_that_hangs_up_ends_the_work(
    server: SpeechGateway, data: int, form: dict[str, str]
) -> None:
    # Too long for all buffers on the way, so that it cannot be over by itself.
    answer = await server.speak(TEXT * 12, response_format="wav", **form)
    await until(lambda: server.work == 1)

    await hang_up_after(answer, data)

    await until(lambda: server.work == 0)


async def test_c73_a_client_that_hangs_up_before_the_first_byte_ends_the_work(
    server: SpeechGateway,
) -> None:
    asking = asyncio.ensure_future(server.speak(TEXT * 12, stream=False, response_format="wav"))
    await until(lambda: server.work == 1)

    asking.cancel()
    await asyncio.wait([asking])

    await until(lambda: server.work == 0)
