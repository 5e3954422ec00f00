from __future__ import annotations

import asyncio
import io
import json
import logging
from typing import Any

import pytest

from duologue.core.errors import EngineError
from duologue.telemetry import bound, configure_logging, get_logger
from duologue.telemetry.logging import WARNINGS_PER_MINUTE, Level
from tests.fakes.clock import FakeClock


class Log:
    """A configured pipeline and what it wrote."""

    def __init__(self, level: Level = "debug", *, keep_private: bool = False) -> None:
        self.clock = FakeClock()
        self.stream = io.StringIO()
        configure_logging(
            level=level,
            log_format="json",
            keep_private=keep_private,
            stream=self.stream,
            clock=self.clock,
        )
        self.logger = get_logger("door")

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.stream.getvalue().splitlines()]

    def line(self) -> dict[str, Any]:
        (line,) = self.lines()
        return line


def fail() -> None:
    try:
        raise KeyError("what the person said")
    except KeyError as exc:
        raise EngineError("stage asr failed on 'hello'") from exc


def test_a_line_is_json_with_its_event_its_values_and_the_time() -> None:
    log = Log()
    log.clock.advance(1.5)
    log.logger.info("response_started", ttfa_ms=212)
    assert log.line() == {
        "event": "response_started",
        "level": "info",
        "part": "door",
        "timestamp": "2023-11-14T22:13:21.500+00:00",
        "ttfa_ms": 212,
    }


def test_private_values_are_dropped_unless_they_are_wanted() -> None:
    log = Log()
    log.logger.info("turn_ended", words=2, **{"pii.transcript": "hello there"})
    assert "hello" not in log.stream.getvalue()
    assert log.line()["words"] == 2
    wanted = Log(keep_private=True)
    wanted.logger.info("turn_ended", **{"pii.transcript": "hello there"})
    assert wanted.line()["pii.transcript"] == "hello there"


def test_an_exception_shows_its_type_code_and_place_but_not_its_text() -> None:
    log = Log()
    try:
        fail()
    except EngineError:
        log.logger.exception("response_failed")
    line = log.line()
    assert (line["error"], line["error_code"]) == ("EngineError", "stage_failed")
    assert line["cause"] == "KeyError"
    assert line["traceback"][-1].endswith(" fail")
    assert "hello" not in log.stream.getvalue()
    assert "person" not in log.stream.getvalue()


def test_exceptions_can_be_handed_over_as_objects() -> None:
    log = Log()
    log.logger.error("worker_died", exc_info=ValueError("x"))
    assert log.line()["error"] == "ValueError"


def test_lines_below_the_level_are_not_written() -> None:
    log = Log("warning")
    log.logger.info("session_started")
    log.logger.warning("append_refused")
    assert [line["event"] for line in log.lines()] == ["append_refused"]


async def test_bound_keys_reach_inner_tasks_and_stay_out_of_siblings() -> None:
    log = Log()

    async def speak(event: str) -> None:
        await asyncio.sleep(0)
        log.logger.info(event)

    async def session(name: str) -> None:
        with bound(session_id=name, turn=1):
            async with asyncio.TaskGroup() as group:
                group.create_task(speak(f"inner_{name}"))
        await speak("outer_" + name)

    async with asyncio.TaskGroup() as group:
        group.create_task(session("a"))
        group.create_task(session("b"))
    seen = {line["event"]: line.get("session_id") for line in log.lines()}
    assert seen == {"inner_a": "a", "inner_b": "b", "outer_a": None, "outer_b": None}


def test_a_flood_of_warnings_is_cut_off_and_its_size_told_later() -> None:
    log = Log()
    for _ in range(WARNINGS_PER_MINUTE + 5):
        log.logger.warning("append_refused")
    log.logger.warning("other_trouble")
    assert len(log.lines()) == WARNINGS_PER_MINUTE + 1
    log.clock.advance(60)
    log.logger.warning("append_refused")
    assert log.lines()[-1]["held_back"] == 5


def test_errors_are_never_held_back() -> None:
    log = Log()
    for _ in range(WARNINGS_PER_MINUTE + 5):
        log.logger.error("session_crashed")
    assert len(log.lines()) == WARNINGS_PER_MINUTE + 5


def test_lines_of_libraries_come_along_without_their_text() -> None:
    log = Log()
    logging.getLogger("aiohttp.server").error("cannot handle %s", "what the person said")
    line = log.line()
    assert (line["event"], line["part"]) == ("foreign_log", "aiohttp.server")
    assert line["template"] == "cannot handle %s"
    assert "person" not in log.stream.getvalue()


def test_chatter_of_libraries_is_left_out() -> None:
    log = Log("debug")
    logging.getLogger("aiohttp.access").info("GET /")
    assert log.lines() == []


@pytest.mark.parametrize(("log_format", "is_text"), [("console", True), ("auto", False)])
def test_people_get_text_and_programs_get_json(log_format: Any, is_text: bool) -> None:
    stream = io.StringIO()
    configure_logging(log_format=log_format, stream=stream, clock=FakeClock())
    get_logger("door").info("session_started")
    assert stream.getvalue().startswith("{") is not is_text
    assert "session_started" in stream.getvalue()
