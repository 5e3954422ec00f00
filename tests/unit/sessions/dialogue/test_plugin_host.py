"""One plugin's steps: its speech is returned, its requests go to the engine."""

from __future__ import annotations

import pytest

from duologue.core.errors import PluginError
from duologue.core.fence import SESSION_LANE, Lane
from duologue.duplex_plugins.contract import (
    AdoptRequest,
    AppendToRequest,
    BeginResponse,
    Capabilities,
    FinishRequest,
    PluginConfig,
    PluginEffect,
    SayText,
    StartRequest,
    StopRequest,
    Tick,
)
from duologue.engines.payloads import TextDelta
from duologue.sessions.dialogue.plugin_host import PluginHost, RequestEffect
from duologue.sessions.effects import AppendInput, CancelRequest, FinishInput, SubmitRequest
from duologue.sessions.requests import Asker, Requests
from tests.fakes.plugin import FakePlugin

LANE = Lane("r1")


class Bench:
    def __init__(self) -> None:
        self.plugin = FakePlugin(answers=False)
        self.requests = Requests("s")
        self.requests.epochs.open(LANE)
        self.host = PluginHost(self.plugin, PluginConfig(), self.requests)

    def perform(self, *effects: RequestEffect) -> None:
        for effect in effects:
            self.host.perform(effect)


def test_the_plugin_gets_its_own_state_and_the_input_and_answers_in_order() -> None:
    bench = Bench()
    effects: list[PluginEffect] = [SayText("r1", "a"), StopRequest("tts"), BeginResponse()]
    bench.plugin.then(*effects)
    assert list(bench.host.plugin.step(bench.host.state, Tick(1))) == effects
    assert bench.plugin.seen == [Tick(1)]
    assert bench.host.capabilities == Capabilities()


def test_requests_are_started_fed_finished_and_cancelled() -> None:
    bench = Bench()
    first = TextDelta("hello")
    bench.perform(
        StartRequest(key="tts", pipeline="tts", response_id="r1", more_input=True, credit=9),
        AppendToRequest("tts", first),
        FinishRequest("tts"),
        StopRequest("tts"),
    )
    submitted, *rest = bench.requests.take_effects()
    assert isinstance(submitted, SubmitRequest)
    assert submitted.request.fence.lane == LANE
    assert (submitted.request.more_input, submitted.request.credit) == (True, 9)
    assert rest == [AppendInput("s.1", first), FinishInput("s.1"), CancelRequest("s.1")]


def test_work_without_a_response_is_work_of_the_input_lane_until_it_is_adopted() -> None:
    bench = Bench()
    bench.perform(StartRequest(key="spec", pipeline="llm", first=TextDelta("x")))
    request = bench.requests.find(Asker.PLUGIN, "spec")
    assert request is not None
    assert request.lane == SESSION_LANE
    bench.perform(AdoptRequest("spec", "r1"))
    assert request.lane == LANE


def test_cancelling_what_does_not_run_is_nothing() -> None:
    bench = Bench()
    bench.perform(StopRequest("tts"))
    assert bench.requests.take_effects() == ()


@pytest.mark.parametrize(
    "effect",
    [AppendToRequest("tts", TextDelta("x")), FinishRequest("tts"), AdoptRequest("tts", "r1")],
    ids=lambda effect: type(effect).__name__,
)
def test_using_a_request_that_was_not_started_breaks_the_contract(effect: RequestEffect) -> None:
    with pytest.raises(PluginError, match="request 'tts', which it has not started"):
        Bench().perform(effect)


@pytest.mark.parametrize(
    "effect",
    [StartRequest(key="new", pipeline="tts", response_id="r0"), AdoptRequest("tts", "r0")],
    ids=lambda effect: type(effect).__name__,
)
def test_working_for_a_response_that_is_over_breaks_the_contract(effect: RequestEffect) -> None:
    bench = Bench()
    bench.perform(StartRequest(key="tts", pipeline="tts"))
    with pytest.raises(PluginError, match="response 'r0', which is over"):
        bench.perform(effect)
