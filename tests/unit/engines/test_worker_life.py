from __future__ import annotations

import pytest

from duologue.core.errors import ConfigError, EngineError
from duologue.engines.messages import (
    Begun,
    Died,
    FromWorker,
    JobEnded,
    Open,
    Ready,
    Report,
    Stop,
    WorkerSpec,
)
from duologue.engines.payloads import TextDelta
from duologue.engines.ports import Outcome
from duologue.engines.worker_life import WORKER_CRASHED, make_worker, serve

SCRIPT = WorkerSpec(name="stage/0", runner="script")


class Dying:
    """A worker that dies of one exception."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def run(self) -> None:
        raise self._error


def last_words(error: Exception) -> list[FromWorker]:
    reports: list[Report] = []
    serve(Dying(error), reports.append)  # type: ignore[arg-type]
    (report,) = reports
    return report.messages


class TestServe:
    def test_a_worker_runs_in_the_thread_of_its_caller(self) -> None:
        reports: list[Report] = []
        worker = make_worker(SCRIPT, reports.append)
        worker.receive((Open("a", TextDelta("one")), Stop()))
        serve(worker, reports.append)
        messages = [message for report in reports for message in report.messages]
        assert messages[:3] == [Begun("import"), Begun("load"), Begun("warm_up")]
        assert isinstance(messages[3], Ready)
        assert messages[4:] == [JobEnded("a", Outcome.CANCELLED)]

    def test_an_error_of_ours_is_passed_on_as_it_is(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert last_words(EngineError("no room")) == [Died("stage_failed", "no room")]
        assert "Traceback" in capsys.readouterr().err

    def test_a_wrong_setting_needs_no_traceback(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert last_words(ConfigError("no such voice")) == [Died("invalid_config", "no such voice")]
        assert capsys.readouterr().err == ""

    def test_a_foreign_exception_is_passed_on_without_its_text(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        (died,) = last_words(ValueError("somebody's secret"))
        assert isinstance(died, Died)
        assert died.code == WORKER_CRASHED
        assert died.reason.startswith("ValueError at test_worker_life.py:")
        assert "somebody's secret" in capsys.readouterr().err, "its traceback is in the output"
