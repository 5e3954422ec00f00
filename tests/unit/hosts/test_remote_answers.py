"""Both ends of questions about answers, over a link without a socket."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from duologue.core.errors import LimitExceeded
from duologue.hosts.answer_questions import AskKeepAnswer, KnownAnswer
from duologue.hosts.messages import AnswerFailed
from duologue.hosts.questions import Question, Reply
from duologue.hosts.remote_answers import RemoteAnswers
from duologue.hosts.served_answers import ServedAnswers
from tests.fakes.link import FakeLink
from tests.unit.hosts.test_answers import answers
from tests.unit.hosts.test_served_answers import FAR


def remote(served: ServedAnswers) -> RemoteAnswers:
    async def ask(question: Question, _unwanted: Callable[[Reply], None] | None = None) -> Reply:
        return await served.answer(question)  # type: ignore[arg-type]

    return RemoteAnswers(ask, lambda message: served.failed(message.key))


async def test_answers_of_a_host_are_as_ones_own() -> None:
    kept = answers()
    one, two = remote(ServedAnswers(kept)), remote(ServedAnswers(kept))
    assert await one.begin("a", b"1") is None
    await one.done("a", b"answer")
    assert await two.begin("a", b"1") == b"answer"
    assert await one.begin("b", b"1") is None
    one.failed("b")
    assert await two.begin("b", b"1") is None
    await one.keep_spoken("audio_1", "hello", FAR)
    assert await two.spoken("audio_1") == "hello"
    assert await two.spoken("audio_2") is None


@pytest.mark.parametrize("known", [None, b"answer"])
async def test_who_leaves_while_asking_gives_back_what_it_was_to_make(
    known: bytes | None,
) -> None:
    async with asyncio.TaskGroup() as group:
        link = FakeLink(group)
        link.host_server.reply = KnownAnswer(known)
        asking = RemoteAnswers(link.edge.ask, link.edge.outbox.put)
        task = asyncio.create_task(asking.begin("a", b"1"))
        await asyncio.sleep(0)
        link.write()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        for _ in range(4):
            link.settle()
            await asyncio.sleep(0)
        link.settle()
        gives_back = [AnswerFailed("a")] if known is None else []
        assert link.host_server.heard == gives_back


async def test_an_answer_that_is_too_long_for_the_link_is_not_kept() -> None:
    kept = answers()
    served = ServedAnswers(kept)

    async def ask(question: Question, _unwanted: Callable[[Reply], None] | None = None) -> Reply:
        if isinstance(question, AskKeepAnswer):
            raise LimitExceeded("a frame of 70 MB")
        return await served.answer(question)  # type: ignore[arg-type]

    asking = RemoteAnswers(ask, lambda message: served.failed(message.key))
    assert await asking.begin("a", b"1") is None
    await asking.done("a", b"answer")
    assert await asking.begin("a", b"1") is None, "it may be asked for again"
