from __future__ import annotations

import pytest

from duologue.core.errors import ProtocolError
from duologue.hosts.answer_questions import (
    AskAnswer,
    AskKeepAnswer,
    AskKeepSpoken,
    AskSpoken,
    Kept,
    KnownAnswer,
    Spoken,
)
from duologue.hosts.served_answers import ServedAnswers
from tests.unit.hosts.test_answers import answers

FAR = 1 << 40


async def test_what_one_gateway_answers_another_knows() -> None:
    kept = answers()
    one, two = ServedAnswers(kept), ServedAnswers(kept)
    assert await one.answer(AskAnswer("a", b"1")) == KnownAnswer(None)
    with pytest.raises(ProtocolError):
        await two.answer(AskAnswer("a", b"1"))
    assert await one.answer(AskKeepAnswer("a", b"answer")) == Kept()
    assert await two.answer(AskAnswer("a", b"1")) == KnownAnswer(b"answer")
    assert await one.answer(AskKeepSpoken("audio_1", "hello", FAR)) == Kept()
    assert await two.answer(AskSpoken("audio_1")) == Spoken("hello")
    assert await two.answer(AskSpoken("audio_2")) == Spoken(None)


async def test_what_a_gateway_that_is_gone_had_begun_may_be_sent_again() -> None:
    kept = answers()
    one, two = ServedAnswers(kept), ServedAnswers(kept)
    for key in ("a", "b", "c"):
        await one.answer(AskAnswer(key, b"1"))
    await one.answer(AskKeepAnswer("b", b"answer"))
    one.failed("c")
    one.failed("c")
    one.lost()
    assert await two.answer(AskAnswer("a", b"1")) == KnownAnswer(None)
    assert await two.answer(AskAnswer("b", b"1")) == KnownAnswer(b"answer")
    assert await two.answer(AskAnswer("c", b"1")) == KnownAnswer(None)
    # What it says late, it says of a request that is another's by now.
    await one.answer(AskKeepAnswer("a", b"too late"))
    one.failed("a")
    with pytest.raises(ProtocolError):
        await two.answer(AskAnswer("a", b"1"))


async def test_a_gateway_that_is_lost_while_it_asks_keeps_nothing_from_others() -> None:
    kept = answers()
    one = ServedAnswers(kept)
    one.lost()
    assert await one.answer(AskAnswer("a", b"1")) == KnownAnswer(None)
    assert await ServedAnswers(kept).answer(AskAnswer("a", b"1")) == KnownAnswer(None)
