from __future__ import annotations

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from duologue.composition.kept import make_answers
from duologue.core.clock import SystemClock
from duologue.core.errors import EngineError, ProtocolError
from duologue.gateway.http.answered_once import AnsweredOnce
from duologue.gateway.http.settings import HttpSettings


class Making:
    """Makes another answer each time, or fails."""

    def __init__(self) -> None:
        self.times = 0
        self.fails = False

    async def __call__(self) -> bytes:
        self.times += 1
        if self.fails:
            raise EngineError("no")
        return b"%d" % self.times


def once() -> AnsweredOnce:
    return AnsweredOnce(make_answers(HttpSettings(), SystemClock()))


def request(key: str | None = None, path: str = "/made", caller: str = "me") -> web.Request:
    headers = {"Authorization": f"Bearer {caller}"}
    if key is not None:
        headers["Idempotency-Key"] = key
    return make_mocked_request("POST", path, headers=headers)


async def test_a_key_is_answered_once_for_each_caller_and_route() -> None:
    answers, make = once(), Making()
    assert await answers.answer(request("a"), "what", make) == b"1"
    assert await answers.answer(request("a"), "what", make) == b"1"
    assert await answers.answer(request("a", caller="you"), "what", make) == b"2"
    assert await answers.answer(request("a", path="/other"), "what", make) == b"3"
    assert await answers.answer(request(), "what", make) == b"4"
    assert await answers.answer(request(), "what", make) == b"5"


async def test_keys_in_the_address_are_callers_as_those_in_headers_are() -> None:
    answers, make = once(), Making()

    def given(key: str) -> web.Request:
        headers = {"Idempotency-Key": "a"}
        return make_mocked_request("POST", f"/made?api_key={key}", headers=headers)

    assert await answers.answer(given("me"), "what", make) == b"1"
    assert await answers.answer(given("you"), "what", make) == b"2"
    assert await answers.answer(request("a"), "what", make) == b"1"


async def test_another_request_may_not_use_the_key() -> None:
    answers, make = once(), Making()
    await answers.answer(request("a"), "what", make)
    with pytest.raises(ProtocolError, match="another request"):
        await answers.answer(request("a"), "something else", make)


async def test_what_failed_may_be_asked_for_again() -> None:
    answers, make = once(), Making()
    make.fails = True
    with pytest.raises(EngineError):
        await answers.answer(request("a"), "what", make)
    make.fails = False
    assert await answers.answer(request("a"), "what", make) == b"2"
