"""The moments of turns."""

from __future__ import annotations

import pytest

from duologue.core.fence import Fence, Lane
from duologue.engines.payloads import AudioChunk, ChatRequest, SpeakText, TextDelta
from duologue.engines.ports import Request
from duologue.protocol.commands import CreateResponse
from duologue.sessions.watching.observer import SessionObserver
from duologue.sessions.watching.traced import TracedObserver, WatchedEngine, watched
from duologue.telemetry.turns import TracedTurn
from tests.fakes.call import FakeCall
from tests.fakes.engine import FakeEngine
from tests.fakes.plugin import STAGE
from tests.fakes.taped_call import RATE_HZ, plugin

PIPELINES = ("vad", "end_of_turn", "asr", STAGE, "llm", "tts")


class Bench:
    """A call whose turns are traced."""

    def __init__(self) -> None:
        self.turns: list[TracedTurn] = []
        self.engine = FakeEngine(pipelines=PIPELINES)
        self.call = FakeCall(plugin(), self.engine, trace=self.turns.append)

    def ask(self) -> str:
        """Speak a turn; returns the request that answers it."""
        self.call.say(40)
        self.call.transcribe("words")
        self.call.hush(40)
        self.call.transcribe("words")
        return self.engine.of(STAGE)[-1].request.id


def test_a_turn_has_its_moments_in_order() -> None:
    bench = Bench()
    request = bench.ask()
    bench.call.clock.advance(0.1)
    bench.engine.output(request, TextDelta("words"))
    bench.call.clock.advance(0.1)
    bench.engine.output(request, AudioChunk(bytes(RATE_HZ // 5), RATE_HZ))
    bench.engine.complete(request)
    bench.call.clock.advance(1.0)
    (turn,) = bench.turns
    times = turn.times
    assert (turn.model, turn.status) == ("model", "completed")
    assert times.speech_end is not None
    assert times.end_of_turn is not None
    assert times.speech_end < times.end_of_turn
    assert times.transcript is not None
    assert times.first_token is not None
    assert times.first_audio == pytest.approx(times.first_token + 0.1)
    assert times.first_audible is not None
    assert times.first_audio <= times.first_audible
    assert times.done is not None
    assert times.first_audible <= times.done


def test_what_an_interrupted_answer_still_makes_belongs_to_no_later_turn() -> None:
    bench = Bench()
    first = bench.ask()
    for second in range(6):
        bench.engine.output(first, AudioChunk(bytes(2 * RATE_HZ), RATE_HZ, second * RATE_HZ))
    bench.call.hush(10)
    bench.call.say(30)
    (cut,) = bench.turns
    assert (cut.status, cut.reason) == ("cancelled", "turn_detected")
    bench.engine.output(first, AudioChunk(bytes(2 * RATE_HZ), RATE_HZ, 6 * RATE_HZ))
    bench.call.hush(40)
    bench.call.transcribe("words")
    bench.call.session.close("client_gone")
    assert bench.turns[-1] is not cut
    assert bench.turns[-1].times.first_audio is None


def test_an_answer_that_nobody_spoke_for_is_a_turn_too() -> None:
    bench = Bench()
    bench.call.send(CreateResponse())
    bench.engine.fail(bench.engine.of(STAGE)[-1].request.id)
    (turn,) = bench.turns
    assert turn.status == "failed"
    assert turn.times.speech_end is None


def test_the_first_clause_is_seen_on_its_way_into_the_engine() -> None:
    bench = Bench()
    observer = bench.call.session._observer
    assert isinstance(observer, TracedObserver)
    engine = WatchedEngine(bench.engine, observer)
    fence = Fence("s", Lane("r"), 0)
    engine.submit(Request("x.1", "llm", fence, ChatRequest((), 10)), bench.call.session)
    engine.submit(Request("x.2", "tts", fence, more_input=True), bench.call.session)
    engine.append("x.2", SpeakText("", 0))
    bench.call.clock.advance(0.5)
    engine.append("x.2", SpeakText("A clause.", 9))
    spoken_at = bench.call.clock.now()
    bench.call.clock.advance(0.5)
    engine.append("x.2", SpeakText("Another.", 18))
    bench.call.send(CreateResponse())
    bench.call.session.close("client_gone")
    assert bench.turns[-1].times.first_clause == spoken_at


def test_a_call_that_is_not_traced_has_the_plain_parts() -> None:
    call = FakeCall(plugin(), FakeEngine(pipelines=PIPELINES))
    observer = call.session._observer
    assert type(observer) is SessionObserver
    assert watched(call.engine, observer) is call.engine
    assert call.session._engine_effects._engine is call.engine
