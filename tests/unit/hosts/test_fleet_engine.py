from __future__ import annotations

import pytest

from duologue.core.errors import CapacityError, EngineError
from duologue.core.fence import Fence, Lane
from duologue.engines.payloads import TextDelta
from duologue.engines.ports import Ended, EngineEvent, Output, Request
from duologue.hosts.fleet_engine import FleetEngine
from tests.fakes.engine import FakeEngine

FENCE = Fence("r", Lane("r"), 0)
REQUEST = Request("r", "llm", FENCE, more_input=True, credit=1)


class Heard:
    def __init__(self) -> None:
        self.events: list[EngineEvent] = []

    def on_engine_event(self, event: EngineEvent) -> None:
        self.events.append(event)


def test_a_request_stays_with_the_host_that_it_was_given_to() -> None:
    first, second = FakeEngine(pipelines=("llm",)), FakeEngine(pipelines=("llm",))
    order = [second, first]
    fleet, heard, other = FleetEngine(lambda: order, ["llm"]), Heard(), Heard()
    assert fleet.has_pipeline("llm")
    assert not fleet.has_pipeline("tts")
    fleet.submit(REQUEST, heard)
    order.reverse()
    fleet.append("r", TextDelta("a"))
    fleet.grant("r", 2)
    fleet.finish_input("r")
    fleet.refence("r", FENCE)
    (running,) = second.of("llm")
    assert (running.inputs, running.credit) == ([TextDelta("a")], 3)
    assert first.of("llm") == []
    second.output("r", TextDelta("b"))
    fleet.subscribe("r", other)
    fleet.cancel("r")
    second.complete("r") if not running.cancelled else None
    assert heard.events == [Output("r", FENCE, TextDelta("b"))]
    for late in (fleet.finish_input, fleet.cancel):
        late("unknown")
    fleet.append("unknown", TextDelta("a"))
    fleet.grant("unknown", 1)
    fleet.subscribe("unknown", heard)
    fleet.refence("unknown", FENCE)


def test_the_end_goes_to_the_latest_subscriber_and_is_the_end() -> None:
    engine = FakeEngine(pipelines=("llm",))
    fleet, heard = FleetEngine(lambda: [engine], ["llm"]), Heard()
    fleet.submit(REQUEST, heard)
    engine.complete("r")
    assert isinstance(heard.events[-1], Ended)
    fleet.on_engine_event(heard.events[-1])
    assert len(heard.events) == 1


def test_without_a_host_or_where_it_refuses_nothing_runs() -> None:
    with pytest.raises(CapacityError):
        FleetEngine(list, ["llm"]).submit(REQUEST, Heard())
    fleet = FleetEngine(lambda: [FakeEngine(pipelines=("tts",))], ["llm"])
    with pytest.raises(EngineError):
        fleet.submit(REQUEST, Heard())
    fleet.cancel("r")
