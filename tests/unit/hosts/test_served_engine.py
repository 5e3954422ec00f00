from __future__ import annotations

from duologue.core.fence import Fence, Lane
from duologue.engines.payloads import TextDelta
from duologue.engines.ports import Outcome
from duologue.hosts.engine_messages import (
    CreditGranted,
    FromEngine,
    InputAppended,
    InputFinished,
    RequestCancelled,
    RequestOver,
    RequestProduced,
    RequestRefenced,
    RequestSubmitted,
)
from duologue.hosts.served_engine import ServedEngine
from tests.fakes.clock import FakeClock
from tests.fakes.engine import FakeEngine

FENCE = Fence("r", Lane("r"), 0)
NEXT = Fence("r", Lane("r"), 1)
SUBMIT = RequestSubmitted("r", "llm", FENCE, None, True, 5, 30.0)


class Scene:
    def __init__(self, *pipelines: str) -> None:
        self.fake = FakeEngine(pipelines=pipelines or ("llm",))
        self.said: list[FromEngine] = []
        self.engine = ServedEngine(self.fake, "edge-0", self.said.append, FakeClock(100.0))


def test_requests_of_two_gateways_never_meet() -> None:
    scene = Scene()
    scene.engine.receive(SUBMIT)
    (running,) = scene.fake.of("llm")
    assert running.request.id == "edge-0/r"
    assert running.request.deadline_s == 130.0
    scene.engine.receive(InputAppended("r", TextDelta("a")))
    scene.engine.receive(CreditGranted("r", 3))
    scene.engine.receive(InputFinished("r"))
    assert running.inputs == [TextDelta("a")]
    assert running.credit == 8
    scene.fake.output("edge-0/r", TextDelta("b"))
    scene.engine.receive(RequestRefenced("r", NEXT))
    scene.fake.complete("edge-0/r")
    assert scene.said[0] == RequestProduced("r", FENCE, TextDelta("b"))
    ended = scene.said[1]
    assert isinstance(ended, RequestOver)
    assert (ended.id, ended.outcome) == ("r", Outcome.COMPLETED)
    assert len(scene.engine) == 0
    scene.engine.receive(RequestCancelled("r"))


def test_a_refusal_is_an_end() -> None:
    scene = Scene("tts")
    scene.engine.receive(SUBMIT)
    (ended,) = scene.said
    assert isinstance(ended, RequestOver)
    assert (ended.id, ended.outcome, ended.code) == ("r", Outcome.FAILED, "stage_failed")
    assert len(scene.engine) == 0


def test_what_runs_for_a_gateway_that_is_gone_is_cancelled_unheard() -> None:
    scene = Scene()
    scene.engine.receive(SUBMIT)
    scene.engine.lost()
    assert scene.fake.of("llm")[0].cancelled
    assert scene.said == []


def test_a_request_whose_output_is_too_long_for_the_link_has_failed_once() -> None:
    scene = Scene()
    scene.engine.receive(SUBMIT)
    (running,) = scene.fake.of("llm")
    scene.fake.output("edge-0/r", TextDelta("b"))
    (long,) = scene.said
    scene.engine.unsent(long, "a frame of 70 MB")
    over = RequestOver("r", FENCE, Outcome.FAILED, "stage_failed", "a frame of 70 MB")
    assert scene.said == [long, over]
    assert running.cancelled
    scene.fake.output("edge-0/r", TextDelta("c"))
    scene.fake.complete("edge-0/r")
    scene.engine.unsent(long, "a frame of 70 MB")
    assert scene.said == [long, over]
    assert len(scene.engine) == 0
