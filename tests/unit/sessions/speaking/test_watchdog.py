"""Answers that are stuck are found, and no others."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from structlog.testing import capture_logs

from duologue.duplex_plugins.contract import BeginResponse, Capabilities, SayAudio, SayText
from duologue.engines.payloads import AudioChunk, TextDelta
from duologue.protocol.commands import CreateResponse
from duologue.protocol.errors import ErrorCode
from duologue.protocol.response_events import ResponseDone
from duologue.sessions.settings import SessionSettings
from duologue.sessions.speaking.response import Response
from duologue.sessions.speaking.watchdog import Watchdog
from tests.fakes.call import FakeCall
from tests.fakes.engine import FakeEngine
from tests.fakes.plugin import STAGE, FakePlugin
from tests.unit.sessions.dialogue_bench import Bench, T, pcm

SILENCE_S, INAUDIBLE_S = 30.0, 20.0
SILENT, INAUDIBLE = ErrorCode.STAGE_TIMEOUT, ErrorCode.RESPONSE_INAUDIBLE


class Watched:
    """A dialogue under watch."""

    def __init__(self, capabilities: Capabilities | None = None) -> None:
        self.bench = Bench(capabilities)
        patient = capabilities is not None and capabilities.decides_turns
        speaking = self.bench.speaking
        self.dog = Watchdog(speaking, SILENCE_S, INAUDIBLE_S, patient=patient)

    def stuck(self, now: float) -> list[tuple[Response, ErrorCode]]:
        due = self.dog.due_at()
        found = self.dog.stuck(now)
        assert bool(found) is (due is not None and now >= due)
        return found


def test_an_answer_from_which_nothing_comes_is_stuck() -> None:
    watched = Watched()
    response = watched.bench.request()
    assert watched.stuck(T + 29.9) == []
    assert watched.stuck(T + 30.0) == [(response, SILENT)]


def test_a_model_that_decides_by_itself_may_be_silent_as_long_as_it_likes() -> None:
    watched = Watched(Capabilities(decides_turns=True))
    watched.bench.say(BeginResponse())
    assert watched.dog.due_at() is None


def test_an_answer_is_not_silent_while_some_of_it_still_waits() -> None:
    watched = Watched()
    response = watched.bench.request()
    watched.bench.say(SayAudio(response.id, pcm(5000)), now=T + 10)
    watched.bench.read(T + 10)
    assert watched.dog.due_at() is None
    watched.bench.read(T + 13)
    assert watched.dog.due_at() == T + 10 + SILENCE_S


def test_the_silence_of_the_longest_silent_answer_counts() -> None:
    watched = Watched()
    bench = watched.bench
    bench.request()
    assert watched.dog.due_at() == T + SILENCE_S
    bench.dialogue.request(bench.config(conversation="none"), T + 5)
    bench.say(SayAudio(bench.speaking.all()[0].id, pcm(20)), now=T + 8)
    bench.read()
    assert watched.dog.due_at() == T + 5 + SILENCE_S


def test_text_that_goes_on_without_its_sound_is_stuck_once_what_was_sent_is_heard() -> None:
    watched = Watched()
    bench = watched.bench
    response = bench.request()
    bench.say(SayText(response.id, "One."), SayAudio(response.id, pcm(2000)), now=T)
    bench.read(T)
    assert response.unsounded_since is None
    for second in range(1, 40):
        bench.say(SayText(response.id, " More."), now=T + second)
        bench.read(T + second)
        # Two seconds of it are heard first.
        expected = [(response, INAUDIBLE)] if second > 2 + INAUDIBLE_S else []
        assert watched.stuck(T + second) == expected


def test_an_answer_that_is_stuck_for_two_reasons_fails_once() -> None:
    watched = Watched()
    bench = watched.bench
    response = bench.request()
    bench.say(SayText(response.id, "One."), now=T)
    bench.read(T)
    assert watched.stuck(T + max(SILENCE_S, INAUDIBLE_S) + 1) == [(response, SILENT)]


def test_sound_that_still_waits_is_no_reason_to_wait_for_more() -> None:
    watched = Watched()
    bench = watched.bench
    response = bench.request()
    bench.say(SayAudio(response.id, pcm(20_000)), SayText(response.id, "More."), now=T)
    bench.read(T)
    assert watched.dog.due_at() is None


def test_a_written_answer_needs_no_sound() -> None:
    watched = Watched()
    bench = watched.bench
    response = bench.request(output_modalities=("text",))
    for second in range(60):
        bench.say(SayText(response.id, "Word. "), now=T + second)
        bench.read(T + second)
        assert watched.stuck(T + second) == []


class AnyAnswer(RuleBasedStateMachine):
    """Whatever comes of an answer and when: after a look, nothing is due before now."""

    def __init__(self) -> None:
        super().__init__()
        self.watched = Watched()
        self.bench = self.watched.bench
        self.now = T

    @rule(beside=st.booleans())
    def ask(self, beside: bool) -> None:
        active = self.bench.speaking.active
        running = len(self.bench.speaking) - (active is not None)
        if (beside and running < 2) or (not beside and active is None):
            config = self.bench.config(conversation="none" if beside else "auto")
            self.bench.dialogue.request(config, self.now)

    @rule(which=st.integers(0, 3), ms=st.integers(0, 3000), text=st.booleans())
    def say(self, which: int, ms: int, text: bool) -> None:
        responses = self.bench.speaking.all()
        if responses:
            name = responses[which % len(responses)].id
            said = SayText(name, "x") if text else SayAudio(name, pcm(ms))
            self.bench.say(said, now=self.now)

    @rule(seconds=st.floats(0, 40), reads=st.booleans())
    def wait(self, seconds: float, reads: bool) -> None:
        self.now += seconds
        if reads:
            self.bench.read(self.now)
        for response, code in self.watched.stuck(self.now):
            self.bench.dialogue.stop(response, "failed", code, self.now)

    @invariant()
    def what_is_due_is_yet_to_come_after_a_look(self) -> None:
        if self.watched.dog.stuck(self.now) == []:
            due = self.watched.dog.due_at()
            assert due is None or due > self.now


TestAnyAnswer = AnyAnswer.TestCase


# In a whole session


def a_call() -> FakeCall:
    settings = SessionSettings(response_timeout_s=SILENCE_S, inaudible_timeout_s=INAUDIBLE_S)
    return FakeCall(FakePlugin(), FakeEngine(pipelines=(STAGE,)), settings)


def check_told(call: FakeCall, what: str, code: str, logs: list[dict[str, object]]) -> None:
    (done,) = call.client.of(ResponseDone)
    assert done.response.status == "failed"
    assert done.response.status_details is not None
    assert done.response.status_details.error is not None
    assert done.response.status_details.error.code == code
    (line,) = [line for line in logs if line["event"] == "response_stuck"]
    assert (line["what"], line["code"]) == (what, code)
    assert call.metrics.responses_stuck[what].value == 1
    # The call goes on.
    call.send(CreateResponse())
    stage = call.engine.of(STAGE)[-1]
    call.engine.output(stage.request.id, TextDelta("Yes."))
    call.engine.output(stage.request.id, AudioChunk(pcm(200), 24_000))
    call.engine.complete(stage.request.id)
    call.clock.advance(1)
    assert call.client.of(ResponseDone)[-1].response.status == "completed"


def test_committed_and_nothing_answers_is_a_figure_a_line_and_a_failed_answer() -> None:
    call = a_call()
    with capture_logs() as logs:
        call.send(CreateResponse())
        call.clock.advance(SILENCE_S)
        check_told(call, "unanswered", "stage_timeout", logs)


def test_speaking_and_nothing_audible_is_a_figure_a_line_and_a_failed_answer() -> None:
    call = a_call()
    with capture_logs() as logs:
        call.send(CreateResponse())
        (stage,) = call.engine.of(STAGE)
        for _ in range(int(INAUDIBLE_S)):
            call.engine.output(stage.request.id, TextDelta("Word. "))
            call.clock.advance(1)
        check_told(call, "inaudible", "response_inaudible", logs)


def test_text_alone_and_then_nothing_is_one_failed_answer() -> None:
    call = a_call()
    with capture_logs() as logs:
        call.send(CreateResponse())
        (stage,) = call.engine.of(STAGE)
        call.engine.output(stage.request.id, TextDelta("Word."))
        call.clock.advance(INAUDIBLE_S + SILENCE_S)
        check_told(call, "inaudible", "response_inaudible", logs)
    assert call.flights == []


def test_a_timer_that_comes_late_finds_one_failed_answer_too() -> None:
    call = a_call()
    call.send(CreateResponse())
    (stage,) = call.engine.of(STAGE)
    call.engine.output(stage.request.id, TextDelta("Word."))
    call.clock._now += 5 * SILENCE_S
    call.session.on_timer()
    assert len(call.client.of(ResponseDone)) == 1
    assert call.flights == []


def test_an_answer_that_breaks_off_is_a_figure_a_line_and_a_failed_answer() -> None:
    call = a_call()
    with capture_logs() as logs:
        call.send(CreateResponse())
        (stage,) = call.engine.of(STAGE)
        call.engine.output(stage.request.id, AudioChunk(pcm(100), 24_000))
        call.clock.advance(SILENCE_S)
        check_told(call, "broken_off", "stage_timeout", logs)
