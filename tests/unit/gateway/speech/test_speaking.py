from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from duologue.core.errors import EngineError
from duologue.core.ids import id_maker
from duologue.engines.payloads import AudioChunk, Payload, SpeakText, SpeechMark
from duologue.gateway.route_requests import Outputs, RouteRequests
from duologue.gateway.speech.speaking import SPEECH_RATE_HZ, Mark, Speaking
from duologue.gateway.speech.voices import Manner
from tests.fakes.clock import FakeClock
from tests.fakes.engine import FakeEngine

SENTENCES = "One is here. Two is there. Three is everywhere. Four is gone. Five is left."
MS_PER_CHAR = 10


class Voice:
    """Speaks 10 ms for each character, at a rate of its own."""

    def __init__(self, rate_hz: int = SPEECH_RATE_HZ) -> None:
        self.rate_hz = rate_hz
        self.sample = 0

    def __call__(self, clause: Payload) -> list[Payload | EngineError]:
        assert isinstance(clause, SpeakText)
        samples = len(clause.text) * self.rate_hz * MS_PER_CHAR // 1000
        chunk = AudioChunk(b"\1\0" * samples, self.rate_hz, self.sample)
        self.sample += samples
        mark = SpeechMark(clause.text_end, self.sample)
        return [chunk, mark] if samples else [mark]


class Scene:
    """Someone who speaks, and an engine that answers when the test says so."""

    def __init__(self, outputs: Outputs, engine: FakeEngine, how: Manner) -> None:
        self.engine = engine
        self.speaking = Speaking(outputs, how)
        self.pcm = b""
        self.marks: list[Mark] = []

    @property
    def said(self) -> list[str]:
        (request,) = (*self.engine.running.values(), *self.engine._ended.values())
        return [each.text for each in request.inputs if isinstance(each, SpeakText)]

    async def listen(self) -> None:
        async for piece in self.speaking.pieces():
            self.pcm += piece.pcm
            self.marks += piece.marks
            self.engine.deliver()


@contextmanager
def scene(
    answer: Callable[[Payload], list[Payload | EngineError]] | None = None, **how: float
) -> Iterator[Scene]:
    engine = FakeEngine({"tts": answer or Voice()})
    client = RouteRequests(engine, FakeClock(), id_maker(), 60)
    with client.request("tts", more_input=True, credit=4000) as outputs:
        yield Scene(outputs, engine, Manner("tts", "anna", **how))
    engine.deliver()


async def test_a_text_is_spoken_clause_by_clause() -> None:
    with scene() as heard:
        heard.speaking.feed(SENTENCES)
        heard.speaking.finish()
        heard.engine.deliver()
        await heard.listen()

        assert " ".join(heard.said) == SENTENCES
        assert [mark.text_end for mark in heard.marks][-1] == len(SENTENCES)
        assert heard.speaking.samples == len(heard.pcm) // 2
        assert len(heard.pcm) // 2 == heard.marks[-1].sample


async def test_only_a_few_clauses_are_with_the_voice_at_a_time() -> None:
    with scene() as heard:
        heard.speaking.feed(SENTENCES * 20)
        heard.speaking.finish()

        assert len(heard.said) == 3
        heard.engine.deliver(2)
        assert len(heard.said) == 3
        heard.engine.deliver()
        await heard.listen()
        assert "".join(heard.said).count("Five") == 20


async def test_nothing_is_said_of_a_clause_that_is_not_complete() -> None:
    with scene() as heard:
        heard.speaking.feed("One is here. Two is")
        assert heard.said == ["One is here."]

        heard.speaking.flush()
        assert heard.said == ["One is here.", "Two is"]

        heard.speaking.feed(" there. And so on.")
        heard.speaking.finish()
        heard.engine.deliver()
        await heard.listen()
        assert " ".join(heard.said) == "One is here. Two is there. And so on."


async def test_offsets_count_the_blanks_before_the_first_word() -> None:
    with scene() as heard:
        for text in ("  ", "\n Hello", " there."):
            heard.speaking.feed(text)
        heard.speaking.finish()
        heard.engine.deliver()
        await heard.listen()

        assert heard.marks[-1].text_end == len("  \n Hello there.")


async def test_another_rate_is_converted_and_marks_with_it() -> None:
    with scene(Voice(16_000)) as heard:
        heard.speaking.feed("Hello there.")
        heard.speaking.finish()
        heard.engine.deliver()
        await heard.listen()

        expected = len("Hello there.") * MS_PER_CHAR * SPEECH_RATE_HZ // 1000
        assert len(heard.pcm) // 2 == expected
        assert heard.marks == [Mark(len("Hello there."), expected, True)]


async def test_speech_that_a_voice_cannot_make_faster_is_stretched() -> None:
    with scene(speed=2.0, tempo=2.0) as heard:
        heard.speaking.feed(SENTENCES)
        heard.speaking.finish()
        heard.engine.deliver()
        await heard.listen()

        usual = len("".join(heard.said)) * MS_PER_CHAR / 1000
        assert len(heard.pcm) / 2 / SPEECH_RATE_HZ == pytest.approx(usual / 2, abs=0.05)
        assert heard.marks[-1].sample / SPEECH_RATE_HZ == pytest.approx(usual / 2, abs=0.01)


async def test_what_says_nothing_is_no_speech() -> None:
    with scene() as heard:
        heard.speaking.feed("... --- ...")
        heard.speaking.finish()
        heard.engine.deliver()
        await heard.listen()

        assert heard.pcm == b""


@pytest.mark.parametrize("ends", [True, False])
async def test_a_voice_that_fails_or_breaks_off_is_an_error(ends: bool) -> None:
    def half(_clause: Payload) -> list[Payload | EngineError]:
        return [] if ends else [EngineError("no voice today", code="stage_failed")]

    with scene(half) as heard:
        heard.speaking.feed("Hello there.")
        heard.speaking.finish()
        heard.engine.deliver()
        with pytest.raises(EngineError):
            await heard.listen()


async def test_a_voice_that_changes_its_rate_is_an_error() -> None:
    rates = iter((16_000, 24_000))

    def odd(clause: Payload) -> list[Payload | EngineError]:
        return Voice(next(rates))(clause)

    with scene(odd) as heard:
        heard.speaking.feed("One is here. Two is there.")
        heard.speaking.finish()
        heard.engine.deliver()
        with pytest.raises(EngineError, match="16000 to 24000"):
            await heard.listen()


async def test_c48_a_hole_of_twelve_seconds_in_the_speech_is_no_end() -> None:
    engine, clock = FakeEngine(pipelines=("tts",)), FakeClock()
    client = RouteRequests(engine, clock, id_maker(), 60)
    heard = b""

    async def listen(speaking: Speaking) -> None:
        nonlocal heard
        async for piece in speaking.pieces():
            heard += piece.pcm

    with client.request("tts", more_input=True, credit=8000) as outputs:
        speaking = Speaking(outputs, Manner("tts", "anna"))
        speaking.feed("One is here.")
        speaking.finish()
        (request_id,) = engine.running
        two_seconds = b"\1\0" * (2 * SPEECH_RATE_HZ)
        async with asyncio.TaskGroup() as group:
            group.create_task(listen(speaking))
            engine.output(request_id, AudioChunk(two_seconds, SPEECH_RATE_HZ, 0))
            await asyncio.sleep(0)
            clock.advance(12)
            engine.output(request_id, AudioChunk(two_seconds, SPEECH_RATE_HZ, 2 * SPEECH_RATE_HZ))
            engine.output(request_id, SpeechMark(12, 4 * SPEECH_RATE_HZ))
            engine.complete(request_id)
    assert heard == two_seconds * 2
