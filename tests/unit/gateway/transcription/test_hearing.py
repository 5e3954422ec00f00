from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from duologue.core.errors import EngineError, ProtocolError
from duologue.core.ids import id_maker
from duologue.engines.payloads import (
    AudioChunk,
    DecodeSpeech,
    HeardDetails,
    ListenOptions,
    Payload,
    Transcript,
)
from duologue.gateway.route_requests import RouteRequests
from duologue.gateway.transcription.hearing import WINDOW_S, HeardWindow, Hearing
from duologue.gateway.transcription.windows import WINDOW_RATE_HZ
from tests.fakes.clock import FakeClock
from tests.fakes.engine import FakeEngine
from tests.unit.gateway.transcription.test_windows import noise, silence

OPTIONS = ListenOptions(words=True, prompt="Names.")
DETAILS = HeardDetails((), -0.5, 0.1)


class Recogniser:
    """Says of each window how long it was."""

    def __init__(self, *texts: str | EngineError) -> None:
        self.texts = list(texts)
        self.asked: list[DecodeSpeech] = []
        self.chunks: list[AudioChunk] = []

    def __call__(self, payload: Payload) -> list[Payload | EngineError]:
        if isinstance(payload, AudioChunk):
            self.chunks.append(payload)
            return []
        assert isinstance(payload, DecodeSpeech)
        self.asked.append(payload)
        text = self.texts.pop(0) if self.texts else f"window {len(self.asked)}"
        if isinstance(text, EngineError):
            return [text]
        return [Transcript(text, "final", payload.end_sample, DETAILS)]


class Engine(FakeEngine):
    """Answers at once."""

    def finish_input(self, request_id: str) -> None:
        super().finish_input(request_id)
        self.deliver()


async def pieces(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


async def heard(
    recogniser: Recogniser | None, *parts: bytes
) -> tuple[list[HeardWindow], Hearing, Engine]:
    engine = Engine({"asr": recogniser or (lambda _: [])})
    client = RouteRequests(engine, FakeClock(), id_maker(), 60)
    hearing = Hearing(client, "asr", OPTIONS, 30)
    return [each async for each in hearing.windows(pieces(*parts))], hearing, engine


async def test_short_audio_is_heard_in_one_window() -> None:
    recogniser = Recogniser(" Hello. ")

    windows, hearing, engine = await heard(recogniser, noise(1), noise(1))

    assert windows == [HeardWindow("Hello.", 0, 2 * WINDOW_RATE_HZ, DETAILS)]
    assert hearing.seconds == 2
    assert recogniser.asked == [DecodeSpeech("final", 2 * WINDOW_RATE_HZ, OPTIONS)]
    assert not engine.running


async def test_long_audio_is_heard_window_by_window() -> None:
    recogniser = Recogniser()

    windows, hearing, _ = await heard(recogniser, *([noise(1)] * 40))

    assert [window.text for window in windows] == [f"window {n + 1}" for n in range(len(windows))]
    assert len(windows) >= 3
    assert hearing.seconds == 40
    assert all(len(each.pcm) / 2 <= WINDOW_S * WINDOW_RATE_HZ for each in recogniser.chunks)
    starts = [each.start_sample for each in recogniser.chunks]
    assert starts == [window.start_sample for window in windows]


async def test_c74_silence_is_not_even_listened_to() -> None:
    recogniser = Recogniser()

    windows, hearing, _ = await heard(recogniser, *([silence(1)] * 60))

    assert windows == []
    assert recogniser.asked == []
    assert hearing.seconds == 60


async def test_windows_without_words_are_left_out() -> None:
    windows, _, _ = await heard(Recogniser("", "Words."), *([noise(1)] * 20))

    assert [window.text for window in windows] == ["Words."]


async def test_no_audio_is_no_window() -> None:
    windows, hearing, _ = await heard(Recogniser())

    assert (windows, hearing.seconds) == ([], 0)


async def test_what_a_recogniser_cannot_do_is_the_clients_to_know() -> None:
    unable = EngineError("stage asr: this model understands 'en' alone", code="unsupported")

    with pytest.raises(ProtocolError) as refused:
        await heard(Recogniser(unable), noise(1))

    assert refused.value.code == "unsupported"


@pytest.mark.parametrize("recogniser", [Recogniser(EngineError("it broke")), None])
async def test_a_recogniser_that_fails_or_says_nothing_is_our_fault(
    recogniser: Recogniser | None,
) -> None:
    with pytest.raises(EngineError):
        await heard(recogniser, noise(1))
