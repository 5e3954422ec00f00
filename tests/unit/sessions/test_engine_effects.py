"""What a session wants of the engine reaches it; what is not taken ends as a failure."""

from __future__ import annotations

from duologue.core.errors import CapacityError, DuologueError
from duologue.core.fence import SESSION_LANE, Fence
from duologue.engines.payloads import SpeakText
from duologue.engines.ports import Ended, EngineEvent, Outcome, Request
from duologue.sessions.effects import (
    AppendInput,
    CancelRequest,
    EngineEffect,
    FinishInput,
    GrantCredit,
    RefenceRequest,
    SubmitRequest,
)
from duologue.sessions.engine_effects import EngineEffects
from tests.fakes.engine import FakeEngine

FENCE = Fence("s", SESSION_LANE, 0)
REQUEST = Request("s.1", "stage", FENCE, None, more_input=True, credit=100)


class Listener:
    """Takes what the engine says."""

    def on_engine_event(self, event: EngineEvent) -> None:
        raise AssertionError("nobody answers here")


class Bench:
    def __init__(self) -> None:
        self.engine = FakeEngine(pipelines=("stage",))
        self.refused: list[tuple[str, DuologueError]] = []
        self._effects = EngineEffects(
            self.engine, lambda request, exc: self.refused.append((request.id, exc))
        )

    def perform(self, *effects: EngineEffect) -> list[Ended | None]:
        return [self._effects.perform(effect, Listener()) for effect in effects]


def test_each_effect_reaches_the_engine() -> None:
    bench = Bench()
    later = Fence("s", SESSION_LANE, 1)
    done = bench.perform(
        SubmitRequest(REQUEST),
        AppendInput("s.1", SpeakText("Hello.", 6)),
        GrantCredit("s.1", 50),
        RefenceRequest("s.1", later),
        FinishInput("s.1"),
        CancelRequest("s.1"),
    )
    assert done == [None] * 6
    running = bench.engine.only("stage")
    assert running.inputs == [SpeakText("Hello.", 6)]
    assert running.credit == 150
    assert running.request.fence == later
    assert running.input_ended
    assert running.cancelled


def test_a_request_that_is_not_taken_has_failed() -> None:
    bench = Bench()
    full = bench.engine.refusals["stage"] = CapacityError("full", retry_after_s=1.0)
    assert bench.perform(SubmitRequest(REQUEST)) == [
        Ended("s.1", FENCE, Outcome.FAILED, "server_full", "full")
    ]
    assert bench.refused == [("s.1", full)]
