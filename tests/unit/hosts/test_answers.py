from __future__ import annotations

import pytest

from duologue.core.clock import SystemClock
from duologue.core.errors import ProtocolError
from duologue.hosts.answers import LocalAnswers
from duologue.hosts.idempotency import IdempotencyKeys
from duologue.hosts.spoken_answers import SpokenAnswers


def answers() -> LocalAnswers:
    return LocalAnswers(IdempotencyKeys(60, 8, 1000), SpokenAnswers(), SystemClock())


async def test_a_request_that_is_sent_again_gets_the_answer_that_was_made() -> None:
    kept = answers()
    assert await kept.begin("a", b"1") is None
    with pytest.raises(ProtocolError, match="still being worked on"):
        await kept.begin("a", b"1")
    await kept.done("a", b"answer")
    assert await kept.begin("a", b"1") == b"answer"
    assert await kept.begin("b", b"1") is None
    kept.failed("b")
    assert await kept.begin("b", b"1") is None


async def test_what_was_said_is_kept_until_its_time_is_over() -> None:
    kept = answers()
    now = int(SystemClock().wall_time())
    await kept.keep_spoken("audio_1", "hello", now + 60)
    await kept.keep_spoken("audio_2", "hello", now - 1)
    assert await kept.spoken("audio_1") == "hello"
    assert await kept.spoken("audio_2") is None
    assert await kept.spoken("audio_3") is None
