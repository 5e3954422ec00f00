from __future__ import annotations

import asyncio

from duologue.clients import DuplexClient
from tests.fakes.clock import FakeClock
from tests.fakes.server import FakeAnswer, FakeTransport, greeting, refusal


async def test_a_cancel_that_crosses_the_end_of_its_response_is_no_error() -> None:
    transport, answer = FakeTransport(greeting()), FakeAnswer("a")

    async def open_transport() -> FakeTransport:
        return transport

    async with DuplexClient(open_transport, clock=FakeClock()) as call:
        transport.say(answer.created(), answer.audio(100))
        await call.wait_until(lambda: call.answering)
        async with asyncio.TaskGroup() as group:
            group.create_task(call.interrupt())
            await asyncio.sleep(0)
            transport.say(refusal("client_1", "response_cancel_not_active"))
