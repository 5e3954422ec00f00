from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence

import pytest

from duologue.codecs.containers import AudioFileDecoder
from duologue.codecs.containers.wav import wav_header
from duologue.core.errors import ClientError, EngineError, LimitExceeded
from duologue.core.ids import id_maker
from duologue.engines.payloads import AudioChunk, DecodeSpeech, Payload, Transcript
from duologue.gateway.chat.hearing import MAX_SPEECH_S, Hearing
from duologue.gateway.route_requests import RouteRequests
from tests.fakes.clock import FakeClock
from tests.fakes.engine import FakeEngine


class Scene:
    """A recogniser that tells how much it has heard."""

    def __init__(self, *, answers: bool = True) -> None:
        self.samples = 0
        self.answers = answers
        self.engine = FakeEngine({"asr": self._hear})
        client = RouteRequests(self.engine, FakeClock(), id_maker(random.Random(1)), 30.0)
        self.hearing = Hearing(client, AudioFileDecoder())

    async def hear(self, *files: bytes) -> dict[tuple[int, int], str]:
        recordings = [((0, number), data) for number, data in enumerate(files)]
        async with asyncio.TaskGroup() as group:
            pump = group.create_task(self._deliver())
            try:
                return await self.hearing.hear(recordings, "asr")
            except (ClientError, EngineError) as exc:
                failure = exc
            finally:
                pump.cancel()
        raise failure

    def _hear(self, payload: Payload) -> Sequence[Payload]:
        if isinstance(payload, AudioChunk):
            assert payload.start_sample == self.samples
            self.samples += len(payload.pcm) // 2
            return []
        assert isinstance(payload, DecodeSpeech)
        text, self.samples = f"{self.samples} samples", 0
        return [Transcript(text, "final", payload.end_sample)] if self.answers else []

    async def _deliver(self) -> None:
        while True:
            self.engine.deliver()
            await asyncio.sleep(0)


def wav(seconds: float, rate_hz: int = 16_000) -> bytes:
    pcm = bytes(2 * int(seconds * rate_hz))
    return wav_header(rate_hz, len(pcm)) + pcm


async def test_each_recording_becomes_its_words() -> None:
    scene = Scene()
    heard = await scene.hear(wav(2.5), wav(0.5, 24_000))
    assert heard == {(0, 0): "40000 samples", (0, 1): "8000 samples"}
    assert scene.engine.running == {}


async def test_a_model_that_hears_gets_the_sound_itself() -> None:
    scene = Scene()
    files = [((0, number), data) for number, data in enumerate((wav(0.5), wav(0.25, 24_000)))]
    read = await scene.hearing.read(files)
    assert {place: len(pcm) for place, pcm in read.items()} == {(0, 0): 16_000, (0, 1): 8_000}
    assert scene.engine.running == {}


async def test_a_file_that_is_none_is_told_with_its_place() -> None:
    with pytest.raises(ClientError) as caught:
        await Scene().hear(wav(0.5), b"")
    assert caught.value.code == "undecodable_audio"
    assert caught.value.param == "messages[0].content[1].input_audio.data"


async def test_all_recordings_together_have_a_limit() -> None:
    part = wav(MAX_SPEECH_S * 0.6, 8_000)
    with pytest.raises(LimitExceeded, match="/v1/audio/transcriptions") as caught:
        await Scene().hear(part, part)
    assert caught.value.param == "messages[0].content[1].input_audio.data"


async def test_a_recogniser_that_says_nothing_has_failed() -> None:
    with pytest.raises(EngineError, match="without a transcript"):
        await Scene(answers=False).hear(wav(0.5))
