from __future__ import annotations

from pathlib import Path

import pytest

from duologue.app import running_app
from duologue.commands.loadtest.caller import MAX_ERRORS, CallerResult, Clip, hold_one_call
from duologue.core.clock import SystemClock
from duologue.core.errors import DuologueError
from tests.fakes.small_gateway import small_settings
from tests.fakes.talking_gateway import speech, talking_settings

CLIP = Clip(speech(400), 0.4)


async def test_a_caller_speaks_waits_and_is_answered(tmp_path: Path) -> None:
    clock = SystemClock()
    async with running_app(talking_settings(tmp_path, "Short.")) as app:
        result = await hold_one_call(app.url, CLIP, clock.now() + 3.0, clock)
    assert result.connect_s is not None
    assert result.waits_s
    assert [wait for wait in result.waits_s if not 0.2 < wait < 3] == []
    assert (result.unanswered, result.errors) == (0, [])


async def test_where_no_turns_are_detected_the_caller_ends_them_by_hand() -> None:
    clock = SystemClock()
    async with running_app(small_settings()) as app:
        result = await hold_one_call(app.url, CLIP, clock.now() + 0.6, clock, model="scripted")
    assert result.errors == []
    assert result.unanswered == 0


async def test_an_echo_is_only_listened_to() -> None:
    clock = SystemClock()
    async with running_app(small_settings()) as app:
        result = await hold_one_call(app.url, CLIP, clock.now() + 0.6, clock, model="echo")
    assert result == CallerResult(connect_s=result.connect_s, gap_s=result.gap_s)


async def test_a_call_that_cannot_be_made_is_a_result(unused_tcp_port: int) -> None:
    clock = SystemClock()
    result = await hold_one_call(f"127.0.0.1:{unused_tcp_port}", CLIP, clock.now() + 1, clock)
    assert result.connect_s is None
    assert result.errors[0].startswith("server_unreachable: nobody answers")


def test_errors_are_kept_up_to_a_number() -> None:
    result = CallerResult()
    for number in range(10):
        result.failed(DuologueError(str(number)))
    assert result.errors == [f"server_error: {number}" for number in range(MAX_ERRORS)]


def test_a_clip_has_a_length() -> None:
    assert CLIP.length_s == pytest.approx(0.4)
