"""One plugin's steps: its speech is returned, its stages become engine streams."""

from __future__ import annotations

import pytest

from duologue.core.errors import PluginError
from duologue.core.fence import INPUT_LANE, Lane
from duologue.duplex_plugins.contract import (
    AdoptStage,
    AppendStage,
    BeginResponse,
    CancelStage,
    Capabilities,
    FinishStage,
    PluginConfig,
    PluginEffect,
    SayText,
    StartStage,
    Tick,
)
from duologue.engines.payloads import TextDelta
from duologue.sessions.dialogue.plugin_host import PluginHost, StageEffect
from duologue.sessions.effects import AppendInput, CancelRequest, FinishInput, SubmitRequest
from duologue.sessions.streams import Owner, Streams
from tests.fakes.plugin import FakePlugin

LANE = Lane("r1")


class Bench:
    def __init__(self) -> None:
        self.plugin = FakePlugin(answers=False)
        self.streams = Streams("s")
        self.streams.epochs.open(LANE)
        self.host = PluginHost(self.plugin, PluginConfig(), self.streams)

    def perform(self, *effects: StageEffect) -> None:
        for effect in effects:
            self.host.perform(effect)


def test_the_plugin_gets_its_own_state_and_the_input_and_answers_in_order() -> None:
    bench = Bench()
    effects: list[PluginEffect] = [SayText("r1", "a"), CancelStage("tts"), BeginResponse()]
    bench.plugin.then(*effects)
    assert list(bench.host.step(Tick(1))) == effects
    assert bench.plugin.seen == [Tick(1)]
    assert bench.host.capabilities == Capabilities()


def test_stages_are_started_fed_finished_and_cancelled() -> None:
    bench = Bench()
    first = TextDelta("hello")
    bench.perform(
        StartStage(key="tts", pipeline="tts", response_id="r1", more_input=True, credit=9),
        AppendStage("tts", first),
        FinishStage("tts"),
        CancelStage("tts"),
    )
    submitted, *rest = bench.streams.take_effects()
    assert isinstance(submitted, SubmitRequest)
    assert submitted.request.fence.lane == LANE
    assert (submitted.request.more_input, submitted.request.credit) == (True, 9)
    assert rest == [AppendInput("s.1", first), FinishInput("s.1"), CancelRequest("s.1")]


def test_work_without_a_response_is_work_of_the_input_lane_until_it_is_adopted() -> None:
    bench = Bench()
    bench.perform(StartStage(key="spec", pipeline="llm", first=TextDelta("x")))
    stream = bench.streams.find(Owner.PLUGIN, "spec")
    assert stream is not None
    assert stream.lane == INPUT_LANE
    bench.perform(AdoptStage("spec", "r1"))
    assert stream.lane == LANE


def test_cancelling_what_does_not_run_is_nothing() -> None:
    bench = Bench()
    bench.perform(CancelStage("tts"))
    assert bench.streams.take_effects() == ()


@pytest.mark.parametrize(
    "effect",
    [AppendStage("tts", TextDelta("x")), FinishStage("tts"), AdoptStage("tts", "r1")],
    ids=lambda effect: type(effect).__name__,
)
def test_using_a_stage_that_was_not_started_breaks_the_contract(effect: StageEffect) -> None:
    with pytest.raises(PluginError, match="stage 'tts', which it has not started"):
        Bench().perform(effect)


@pytest.mark.parametrize(
    "effect",
    [StartStage(key="new", pipeline="tts", response_id="r0"), AdoptStage("tts", "r0")],
    ids=lambda effect: type(effect).__name__,
)
def test_working_for_a_response_that_is_over_breaks_the_contract(effect: StageEffect) -> None:
    bench = Bench()
    bench.perform(StartStage(key="tts", pipeline="tts"))
    with pytest.raises(PluginError, match="response 'r0', which is over"):
        bench.perform(effect)
