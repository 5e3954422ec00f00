"""Which answer is the answer to a question, where functions and interruptions come in between.

This module must not know how a question is asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from duologue.clients.errors import AnswerTimeout, CallEnded
from duologue.clients.responses import Response, ResponseStream

AnswersCall = Callable[[str], bool]
"""Tells whether calls of a function get their output from this client."""


@asynccontextmanager
async def answer_within(
    timeout_s: float, unheard: Callable[[], bool] = lambda: False
) -> AsyncIterator[None]:
    """Limit how long an answer is waited for, and say in words that it has not come.

    Args:
        unheard: Asked at the end of the time: what was said was not even taken for speech.

    Raises:
        AnswerTimeout: The time is over.
    """
    limit = asyncio.timeout(timeout_s)
    try:
        async with limit:
            yield
    except TimeoutError as exc:
        if not limit.expired():
            raise
        if unheard():
            message = (
                f"no answer began within {timeout_s:g} s: no speech was found in what was sent; "
                "it must be s16le mono at 24 kHz"
            )
        else:
            message = f"there was no whole answer within {timeout_s:g} s; it may still come"
        raise AnswerTimeout(message) from exc


async def answer_to(
    response_id: str, answers: ResponseStream, answers_call: AnswersCall
) -> Response:
    """Return the whole answer that begins with a response.

    Raises:
        CallError: The call ended first.
    """
    async for answer in answers:
        if answer.id == response_id:
            return await _after_calls(answer, answers, answers_call)
    raise _none_came()


async def uninterrupted(answers: ResponseStream, answers_call: AnswersCall) -> Response:
    """Return the first answer that the rest of what it answers has not cut off.

    Raises:
        CallError: The call ended first.
    """
    async for answer in answers:
        whole = await _after_calls(answer, answers, answers_call)
        if whole.status != "cancelled":
            return whole
    raise _none_came()


async def _after_calls(
    answer: Response, answers: ResponseStream, answers_call: AnswersCall
) -> Response:
    """Return the answer that follows after the functions which an answer has called."""
    await answer.finished()
    while any(answers_call(call.name) for call in answer.calls):
        try:
            answer = await (await anext(answers)).finished()
        except StopAsyncIteration:
            raise _none_came() from None
    return answer


def _none_came() -> CallEnded:
    return CallEnded("the call ended before there was an answer")
