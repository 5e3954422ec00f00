"""Edges of the person's floor, seen against what the assistant is doing."""

from __future__ import annotations

import random

import pytest

from duologue.core.ids import id_maker
from duologue.protocol.audio_formats import PcmFormat
from duologue.protocol.session_config import SemanticVad, SessionConfig
from duologue.sessions.effects import SubmitRequest
from duologue.sessions.hearing.floor import (
    EndOfTurnWanted,
    FloorEvent,
    SpeechBegan,
    SpeechPaused,
    SpeechResumed,
    TurnOver,
)
from duologue.sessions.hearing.listening import Listening
from duologue.sessions.hearing.turn_taking import (
    Answering,
    TurnCommitted,
    TurnConfirmed,
    TurnDropped,
    TurnEvent,
    TurnPausing,
    TurnResumed,
    TurnTaking,
)
from duologue.sessions.requests import Requests
from duologue.sessions.settings import ListeningSettings

FREE = Answering(active=False, audible=False)
UNHEARD = Answering(active=True, audible=False)
HEARD = Answering(active=True, audible=True)


class Bench:
    """Turn-taking over a floor that a test speaks for."""

    def __init__(self) -> None:
        self.requests = Requests("s")
        config = SessionConfig(input_format=PcmFormat(rate=16000), turn_detection=SemanticVad())
        self.listening = Listening(
            ListeningSettings(),
            config,
            self.requests,
            id_maker(random.Random(0)),
            rate_hz=16000,
            capacity_ms=10_000,
            retain=True,
            transcribe_always=False,
        )
        self.listening.append(b"\x00\x00" * 16000)
        self.requests.take_effects()
        self.turns = TurnTaking(self.listening, min_interruption_ms=350)

    def floor(
        self, *events: FloorEvent, answering: Answering = FREE, interrupts: bool = True
    ) -> list[TurnEvent]:
        return list(self.turns.on_floor(events, answering, interrupts))

    def speak(self, ms: int) -> None:
        """Count speech in the floor's own way."""
        for _ in range(ms // 10):
            end = self.listening.floor._last_end + 160
            self.listening.floor.on_window(0.9, end)


def test_where_nobody_answers_speech_is_a_turn_at_once() -> None:
    bench = Bench()
    (confirmed,) = bench.floor(SpeechBegan(1000))
    assert isinstance(confirmed, TurnConfirmed)
    assert not confirmed.interrupts
    assert confirmed.turn.start_sample == 1000
    assert confirmed.turn.confirmed


def test_a_turn_pauses_resumes_and_is_committed() -> None:
    bench = Bench()
    (confirmed,) = bench.floor(SpeechBegan(1000))
    assert isinstance(confirmed, TurnConfirmed)
    turn = confirmed.turn
    assert bench.floor(SpeechPaused(5000)) == [TurnPausing(turn, 5000)]
    assert bench.floor(SpeechResumed(6000)) == [TurnResumed(turn, 6000)]
    (committed,) = bench.floor(TurnOver(9000))
    assert isinstance(committed, TurnCommitted)
    assert (committed.utterance.item_id, committed.utterance.end_sample) == (turn.item_id, 9000)
    assert bench.listening.turn is None


def test_an_answer_that_nobody_has_heard_is_interrupted_at_once() -> None:
    (confirmed,) = Bench().floor(SpeechBegan(1000), answering=UNHEARD)
    assert isinstance(confirmed, TurnConfirmed)
    assert confirmed.interrupts


def test_over_an_answer_that_is_heard_speech_is_a_turn_when_there_is_enough_of_it() -> None:
    bench = Bench()
    assert bench.floor(SpeechBegan(1000), answering=HEARD) == []
    bench.speak(300)
    assert bench.floor(answering=HEARD) == []
    bench.speak(50)
    (confirmed,) = bench.floor(answering=HEARD)
    assert isinstance(confirmed, TurnConfirmed)
    assert confirmed.interrupts
    assert confirmed.turn.start_sample == 1000
    assert bench.floor(answering=HEARD) == []


def test_too_little_speech_over_an_answer_was_none() -> None:
    bench = Bench()
    bench.floor(SpeechBegan(1000), answering=HEARD)
    assert bench.floor(SpeechPaused(2000), answering=HEARD) == []
    assert bench.floor(SpeechResumed(2500), answering=HEARD) == []
    assert bench.floor(EndOfTurnWanted(2600), answering=HEARD) == []
    assert bench.floor(TurnOver(3000), answering=HEARD) == [TurnDropped(speech_ms=0)]
    assert bench.listening.turn is None
    assert bench.requests.take_effects() == ()


def test_speech_that_outlasts_the_answer_is_a_turn() -> None:
    bench = Bench()
    bench.floor(SpeechBegan(1000), answering=HEARD)
    (confirmed,) = bench.floor(answering=FREE)
    assert isinstance(confirmed, TurnConfirmed)
    assert not confirmed.interrupts


def test_with_interruptions_switched_off_the_turn_is_one_and_the_answer_goes_on() -> None:
    (confirmed,) = Bench().floor(SpeechBegan(1000), answering=HEARD, interrupts=False)
    assert isinstance(confirmed, TurnConfirmed)
    assert not confirmed.interrupts


def test_a_turn_that_is_over_in_the_window_it_is_confirmed_in_is_committed() -> None:
    confirmed, committed = Bench().floor(SpeechBegan(1000), TurnOver(9000))
    assert isinstance(confirmed, TurnConfirmed)
    assert isinstance(committed, TurnCommitted)


def test_the_end_of_turn_model_is_asked_about_a_turn() -> None:
    bench = Bench()
    bench.floor(SpeechBegan(1000))
    assert bench.floor(EndOfTurnWanted(8000)) == []
    (asked,) = bench.requests.take_effects()
    assert isinstance(asked, SubmitRequest)
    assert asked.request.pipeline == "end_of_turn"


@pytest.mark.parametrize("event", [SpeechPaused(1), SpeechResumed(1), TurnOver(1)])
def test_edges_of_a_turn_that_the_client_took_mean_nothing(event: FloorEvent) -> None:
    bench = Bench()
    bench.floor(SpeechBegan(1000))
    bench.listening.abandon()
    assert bench.floor(event) == []
