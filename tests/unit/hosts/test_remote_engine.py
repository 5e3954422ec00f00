from __future__ import annotations

import pytest

from duologue.core.errors import CapacityError, EngineError
from duologue.core.fence import Fence, Lane
from duologue.engines.payloads import TextDelta
from duologue.engines.ports import Ended, EngineEvent, Outcome, Output, Request
from duologue.hosts.engine_messages import (
    CreditGranted,
    InputAppended,
    InputFinished,
    RequestCancelled,
    RequestOver,
    RequestProduced,
    RequestRefenced,
    RequestSubmitted,
    ToEngine,
)
from duologue.hosts.remote_engine import RemoteEngine
from duologue.protocol.errors import ErrorCode
from tests.fakes.clock import FakeClock

FENCE = Fence("r", Lane("r"), 0)
NEXT = Fence("r", Lane("r"), 1)


class Scene:
    def __init__(self) -> None:
        self.said: list[ToEngine] = []
        self.linked = True
        self.engine = RemoteEngine(
            lambda: self.said.append if self.linked else None, ["llm"], FakeClock(100.0)
        )
        self.events: list[EngineEvent] = []

    def on_engine_event(self, event: EngineEvent) -> None:
        self.events.append(event)

    def submit(self) -> None:
        request = Request("r", "llm", FENCE, more_input=True, credit=5, deadline_s=130.0)
        self.engine.submit(request, self)


def test_what_is_asked_of_the_engine_travels_and_what_comes_of_it_too() -> None:
    scene = Scene()
    assert scene.engine.has_pipeline("llm")
    assert not scene.engine.has_pipeline("tts")
    scene.submit()
    scene.engine.append("r", TextDelta("a"))
    scene.engine.finish_input("r")
    scene.engine.grant("r", 3)
    scene.engine.refence("r", NEXT)
    scene.engine.cancel("r")
    assert scene.said == [
        RequestSubmitted("r", "llm", FENCE, None, True, 5, 30.0),
        InputAppended("r", TextDelta("a")),
        InputFinished("r"),
        CreditGranted("r", 3),
        RequestRefenced("r", NEXT),
        RequestCancelled("r"),
    ]
    scene.engine.receive(RequestProduced("r", FENCE, TextDelta("b")))
    scene.engine.receive(RequestOver("r", NEXT, Outcome.CANCELLED))
    assert scene.events == [
        Output("r", FENCE, TextDelta("b")),
        Ended("r", NEXT, Outcome.CANCELLED),
    ]
    assert len(scene.engine) == 0


def test_after_the_end_nothing_is_said_or_heard() -> None:
    scene = Scene()
    scene.submit()
    scene.engine.receive(RequestOver("r", FENCE, Outcome.COMPLETED))
    said = len(scene.said)
    scene.engine.append("r", TextDelta("a"))
    scene.engine.refence("r", NEXT)
    scene.engine.subscribe("r", scene)
    scene.engine.receive(RequestProduced("r", FENCE, TextDelta("b")))
    assert (len(scene.said), len(scene.events)) == (said, 1)


def test_another_subscriber_hears_the_rest() -> None:
    scene, other = Scene(), Scene()
    scene.submit()
    scene.engine.subscribe("r", other)
    scene.engine.receive(RequestProduced("r", FENCE, TextDelta("b")))
    assert scene.events == []
    assert other.events == [Output("r", FENCE, TextDelta("b"))]


def test_without_a_host_nothing_begins_and_what_runs_has_failed() -> None:
    scene = Scene()
    scene.submit()
    with pytest.raises(EngineError):
        scene.submit()
    scene.linked = False
    scene.engine.lost()
    (ended,) = scene.events
    assert isinstance(ended, Ended)
    assert (ended.outcome, ended.code) == (Outcome.FAILED, ErrorCode.HOST_LOST)
    with pytest.raises(CapacityError):
        scene.submit()
    scene.engine.cancel("r")


def test_a_request_whose_input_is_too_long_for_the_link_has_failed_and_the_next_one_goes() -> None:
    scene = Scene()
    scene.submit()
    long = InputAppended("r", TextDelta("a"))
    scene.engine.unsent(long, "a frame of 70 MB")
    failed = Ended("r", FENCE, Outcome.FAILED, ErrorCode.MESSAGE_TOO_LARGE, "a frame of 70 MB")
    assert scene.events == [failed]
    assert scene.said[-1] == RequestCancelled("r")
    scene.engine.receive(RequestOver("r", FENCE, Outcome.CANCELLED))
    scene.engine.unsent(long, "a frame of 70 MB")
    assert scene.events == [failed], "there is one end"
    scene.submit()
    assert len(scene.engine) == 1
