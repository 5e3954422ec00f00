"""Which answer is the answer to a question, where functions and interruptions come in between.

This module must not know how a question is asked.
"""

from __future__ import annotations

from collections.abc import Callable

from duologue.clients.errors import CallEnded
from duologue.clients.responses import Response, ResponseStream

AnswersCall = Callable[[str], bool]
"""Tells whether calls of a function get their output from this client."""


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
