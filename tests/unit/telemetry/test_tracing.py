"""Turns as traces, read from the SDK's own exporter."""

from __future__ import annotations

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from duologue.telemetry.tracing import MOMENTS, ROOT, STEPS, Traces
from duologue.telemetry.turns import TracedTurn, TurnTimes
from tests.fakes.clock import WALL_START_S, FakeClock


def exported(*turns: TracedTurn) -> list[ReadableSpan]:
    exporter = InMemorySpanExporter()
    traces = Traces(FakeClock(100.0), exporter)
    for turn in turns:
        traces.turn(turn)
    traces.close()
    return list(exporter.get_finished_spans())


def turn(times: TurnTimes, status: str = "completed", reason: str = "") -> TracedTurn:
    return TracedTurn("sess_1", "duologue", "resp_1", status, reason, times)


WHOLE = TurnTimes(90.0, 90.2, 90.25, 90.5, 90.6, 90.8, 90.85, 93.0)


def seconds(nanoseconds: int | None) -> float:
    assert nanoseconds is not None
    return nanoseconds / 1e9 - WALL_START_S


def test_a_turn_is_one_trace_with_its_moments_and_steps_at_their_wall_time() -> None:
    spans = exported(turn(WHOLE))
    root = next(span for span in spans if span.name == ROOT)
    assert {span.context.trace_id for span in spans if span.context} == {root.context.trace_id}
    assert root.parent is None
    assert seconds(root.start_time) == pytest.approx(-10.0)
    assert seconds(root.end_time) == pytest.approx(-7.0)
    assert [event.name for event in root.events] == list(MOMENTS)
    assert seconds(root.events[3].timestamp) == pytest.approx(-9.5)
    steps = {span.name: span for span in spans if span is not root}
    assert list(steps) == [name for name, _, _ in STEPS]
    assert all(span.parent == root.context for span in steps.values())
    think = steps["think"]
    assert (think.end_time or 0) - (think.start_time or 0) == pytest.approx(3e8, rel=1e-3)


def test_what_it_says_are_ids_and_outcomes() -> None:
    (root,) = (span for span in exported(turn(WHOLE)) if span.name == ROOT)
    assert dict(root.attributes or {}) == {
        "duologue.session.id": "sess_1",
        "duologue.model": "duologue",
        "duologue.response.id": "resp_1",
        "duologue.response.status": "completed",
        "duologue.response.reason": "",
    }
    assert root.resource.attributes["service.name"] == "duologue"


def test_the_environment_names_the_service(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_SERVICE_NAME", "voices")
    (root,) = (span for span in exported(turn(WHOLE)) if span.name == ROOT)
    assert root.resource.attributes["service.name"] == "voices"


def test_the_environment_decides_how_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "always_off")
    assert exported(turn(WHOLE)) == []


def test_a_step_that_ended_before_the_one_before_has_no_span() -> None:
    drafted = TurnTimes(90.0, 90.4, None, 90.3, 90.35, 90.5, 90.6, 91.0)
    spans = exported(turn(drafted))
    assert "think" not in {span.name for span in spans}
    assert {"listen", "compose", "speak", "deliver", "answer"} <= {span.name for span in spans}


def test_a_failed_answer_is_an_error_and_little_is_enough() -> None:
    (root,) = exported(turn(TurnTimes(done=91.0), "failed", "replica_lost"))
    assert root.status.status_code is StatusCode.ERROR
    assert root.status.description == "replica_lost"
    assert exported(turn(TurnTimes(speech_end=1.0))) == []
