from __future__ import annotations

import asyncio

import pytest

from duologue.clients.asking import answer_to, answer_within, uninterrupted
from duologue.clients.errors import AnswerTimeout, CallEnded
from duologue.clients.responses import Responses, ResponseStream
from duologue.protocol.items import FunctionCallItem
from duologue.protocol.response_events import OutputItemDone
from duologue.protocol.response_resource import ResponseStatus
from tests.fakes.server import FakeAnswer


def told(*script: tuple[str, str | None, ResponseStatus]) -> ResponseStream:
    """A call of which everything has come: names of answers, what they call, how they ended."""
    responses = Responses(24_000)
    stream = responses.open()
    for name, function, status in script:
        answer = FakeAnswer(name)
        responses.put(answer.created())
        if function is not None:
            item = FunctionCallItem(name=function, call_id=f"call_{name}")
            responses.put(OutputItemDone(response_id=answer.response_id, output_index=0, item=item))
        responses.put(answer.done(status))
    responses.end(None)
    return stream


def ours(name: str) -> bool:
    return name == "look"


async def test_the_answer_is_the_one_after_the_last_function() -> None:
    stream = told(
        ("other", None, "completed"),
        ("asked", "look", "completed"),
        ("again", "look", "completed"),
        ("last", None, "completed"),
        ("later", None, "completed"),
    )
    assert (await answer_to("resp_asked", stream, ours)).id == "resp_last"


async def test_functions_of_the_program_are_its_own_business() -> None:
    stream = told(("asked", "theirs", "completed"), ("later", None, "completed"))
    assert (await answer_to("resp_asked", stream, ours)).id == "resp_asked"


async def test_an_answer_that_was_cut_off_by_its_own_question_does_not_count() -> None:
    stream = told(("early", None, "cancelled"), ("right", None, "completed"))
    assert (await uninterrupted(stream, ours)).id == "resp_right"


async def test_a_call_that_ends_first_is_an_error() -> None:
    with pytest.raises(CallEnded):
        await answer_to("resp_asked", told(), ours)
    with pytest.raises(CallEnded):
        await answer_to("resp_asked", told(("asked", "look", "completed")), ours)
    with pytest.raises(CallEnded):
        await uninterrupted(told(("early", None, "cancelled")), ours)


async def test_an_answer_that_does_not_come_is_told_in_words() -> None:
    with pytest.raises(AnswerTimeout, match="no whole answer within 0 s") as late:
        async with answer_within(0):
            await asyncio.Event().wait()
    assert isinstance(late.value, TimeoutError)
    assert late.value.code == "answer_timeout"
    with pytest.raises(AnswerTimeout, match="no answer began within 0 s: no speech was found"):
        async with answer_within(0, lambda: True):
            await asyncio.Event().wait()
    with pytest.raises(TimeoutError, match="mine") as other:
        async with answer_within(60, lambda: True):
            raise TimeoutError("mine")
    assert not isinstance(other.value, AnswerTimeout)
