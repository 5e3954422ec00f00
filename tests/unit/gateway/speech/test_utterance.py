from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from duologue.codecs.containers import OutputFormat
from duologue.core.errors import EngineError, ProtocolError
from duologue.core.ids import id_maker
from duologue.engines.payloads import Payload
from duologue.gateway.catalogue import Catalogue, ServedModel
from duologue.gateway.http.services import HttpServices
from duologue.gateway.http.settings import HttpSettings
from duologue.gateway.route_requests import RouteRequests
from duologue.gateway.speech.utterance import SpeechChoice, Utterance, chosen
from duologue.protocol.speech_stream import AudioDone, ConfigureSpeech, SpeechError, SpeechEvent
from duologue.telemetry import LabelSets, Metrics
from tests.fakes.clock import FakeClock
from tests.fakes.engine import FakeEngine
from tests.unit.gateway.speech.test_speaking import Voice

MODELS = (
    ServedModel("one", {"speech": "tts"}, ("anna", "bert"), (0.5, 2.0)),
    ServedModel("two", {"chat": "llm"}, ("carl",)),
)
CATALOGUE = Catalogue(MODELS)
CHOICE = chosen(CATALOGUE, SpeechChoice())


class Engine(FakeEngine):
    """Answers at once."""

    def append(self, request_id: str, payload: Payload) -> None:
        super().append(request_id, payload)
        self.deliver()

    def finish_input(self, request_id: str) -> None:
        super().finish_input(request_id)
        self.deliver()

    def cancel(self, request_id: str) -> None:
        super().cancel(request_id)
        self.deliver()


def services(engine: FakeEngine) -> HttpServices:
    clock = FakeClock()
    client = RouteRequests(engine, clock, id_maker(), 60)
    return HttpServices(client, CATALOGUE, HttpSettings(), clock, id_maker(), Metrics(LabelSets()))


class Heard:
    """What the client gets."""

    def __init__(self) -> None:
        self.events: list[SpeechEvent | bytes] = []

    async def event(self, event: SpeechEvent) -> None:
        self.events.append(event)

    async def audio(self, data: bytes) -> None:
        self.events.append(data)

    @property
    def names(self) -> Sequence[str]:
        return [type(each).__name__ for each in self.events]

    @property
    def outcomes(self) -> Sequence[str]:
        return [each.reason for each in self.events if isinstance(each, AudioDone)]


async def test_text_may_come_before_its_turn_to_be_spoken() -> None:
    engine = Engine({"tts": Voice()})
    utterance = Utterance(services(engine), CHOICE, 3)
    utterance.feed("Hello")
    utterance.flush()
    utterance.feed(" again.")
    utterance.finish()
    heard = Heard()

    await utterance.speak(heard.event, heard.audio)

    assert heard.names[0] == "AudioStart"
    assert "bytes" in heard.names
    assert heard.events[-1] == AudioDone(
        utterance=3, reason="completed", text_chars=12, audio_ms=120
    )
    assert utterance.has_all_text


async def test_the_one_before_ends_first() -> None:
    engine = Engine({"tts": Voice()})
    parts = services(engine)
    first = Utterance(parts, CHOICE, 0)
    second = Utterance(parts, CHOICE, 1, first)
    heard = Heard()
    for each in (first, second):
        each.feed("Hello.")
        each.finish()

    later = asyncio.ensure_future(second.speak(heard.event, heard.audio))
    await asyncio.sleep(0)
    assert heard.events == []
    await first.speak(heard.event, heard.audio)
    await later

    done = [each.utterance for each in heard.events if isinstance(each, AudioDone)]
    assert done == [0, 1]
    assert heard.names.index("AudioDone") < heard.names.index("AudioStart", 1)


async def test_one_that_was_cancelled_before_its_turn_says_nothing() -> None:
    engine = Engine({"tts": Voice()})
    utterance = Utterance(services(engine), CHOICE, 0)
    utterance.feed("Hello.")
    utterance.cancel()
    heard = Heard()

    await utterance.speak(heard.event, heard.audio)

    assert heard.names == ["AudioDone"]
    assert heard.outcomes == ["cancelled"]
    assert not engine.running


async def test_a_voice_that_fails_is_told_and_ends_the_utterance_alone() -> None:
    def broken(_clause: Payload) -> list[Payload | EngineError]:
        return [EngineError("no voice today")]

    utterance = Utterance(services(Engine({"tts": broken})), CHOICE, 0)
    utterance.feed("Hello.")
    utterance.finish()
    heard = Heard()

    await utterance.speak(heard.event, heard.audio)

    (error,) = [each for each in heard.events if isinstance(each, SpeechError)]
    assert error.error.type == "server_error"
    assert "today" not in error.error.message
    assert heard.outcomes == ["failed"]


async def test_whoever_waits_is_let_go_when_the_client_has_gone() -> None:
    async def gone(_event: object) -> None:
        raise ConnectionResetError

    utterance = Utterance(services(Engine({"tts": Voice()})), CHOICE, 0)
    utterance.feed("Hello.")
    utterance.finish()

    with pytest.raises(ConnectionResetError):
        await utterance.speak(gone, gone)
    await utterance.wait_over()


def test_choices_add_up() -> None:
    first = chosen(CATALOGUE, CHOICE, ConfigureSpeech(voice="bert", speed=1.5))
    second = chosen(CATALOGUE, first, ConfigureSpeech(response_format="mp3", audio="base64"))

    assert second.how.voice == "bert"
    assert second.how.speed == second.speed == 1.5
    assert second.audio_format is OutputFormat.MP3
    assert second.in_text
    shown = second.shown()
    assert (shown.model, shown.audio, shown.sample_rate) == ("one", "base64", 24_000)


@pytest.mark.parametrize(
    "change",
    [
        ConfigureSpeech(model="two"),
        ConfigureSpeech(model="three"),
        ConfigureSpeech(voice="carl"),
        ConfigureSpeech(speed=0.0),
        ConfigureSpeech(response_format="ogg"),
    ],
)
def test_a_choice_that_there_is_not_is_refused(change: ConfigureSpeech) -> None:
    with pytest.raises(ProtocolError):
        chosen(CATALOGUE, CHOICE, change)
