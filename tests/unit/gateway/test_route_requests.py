from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence

import pytest

from duologue.core.errors import CapacityError, EngineError, ProtocolError, StageTimeout
from duologue.core.ids import id_maker
from duologue.engines.payloads import Payload, SpeakText, TextDelta
from duologue.gateway.route_requests import RouteRequests
from tests.fakes.clock import FakeClock
from tests.fakes.engine import FakeEngine

HELLO = SpeakText("hello", 5)


def client(engine: FakeEngine) -> RouteRequests:
    return RouteRequests(engine, FakeClock(), id_maker(random.Random(1)), timeout_s=30.0)


def letters(payload: Payload) -> Sequence[Payload]:
    assert isinstance(payload, SpeakText)
    return [TextDelta(letter) for letter in payload.text]


async def test_outputs_come_in_order_and_end_with_the_request() -> None:
    engine = FakeEngine({"spell": letters})
    with client(engine).request("spell", HELLO) as outputs:
        engine.deliver()
        assert [payload async for payload in outputs] == letters(HELLO)
    assert engine.cancelled == []


async def test_a_request_carries_its_deadline() -> None:
    engine = FakeEngine({"spell": letters})
    with client(engine).request("spell", HELLO):
        request = engine.submitted[0]
        assert request.deadline_s == FakeClock().now() + 30.0
        assert request.fence.session == request.id


async def test_what_is_taken_is_granted_anew() -> None:
    engine = FakeEngine({"spell": letters})
    with client(engine).request("spell", HELLO, credit=2) as outputs:
        assert engine.deliver() == 2
        assert await anext(outputs) == TextDelta("h")
        assert engine.deliver() == 1


async def test_input_may_follow() -> None:
    engine = FakeEngine({"spell": letters})
    with client(engine).request("spell", more_input=True) as outputs:
        outputs.append(SpeakText("a", 1))
        outputs.append(SpeakText("b", 2))
        outputs.finish()
        engine.deliver()
        assert [payload async for payload in outputs] == [TextDelta("a"), TextDelta("b")]


async def test_leaving_early_cancels_and_late_output_goes_nowhere() -> None:
    engine = FakeEngine({"spell": letters})
    with client(engine).request("spell", HELLO) as outputs:
        engine.deliver(1)
        assert await anext(outputs) == TextDelta("h")
    request = engine.submitted[0]
    assert engine.cancelled == [request.id]
    engine.output(request.id, TextDelta("late"))
    engine.deliver()
    assert engine.running == {}
    with pytest.raises(StopAsyncIteration):
        await anext(outputs)


async def test_a_cancelled_task_cancels_its_request() -> None:
    engine = FakeEngine(pipelines=("slow",))

    async def wait() -> None:
        with client(engine).request("slow", HELLO) as outputs:
            await anext(outputs)

    async with asyncio.TaskGroup() as group:
        task = group.create_task(wait())
        await asyncio.sleep(0)
        task.cancel()
    assert engine.cancelled == [engine.submitted[0].id]


async def test_a_failure_has_the_code_of_the_engine() -> None:
    engine = FakeEngine(pipelines=("slow",))
    with client(engine).request("slow", HELLO) as outputs:
        engine.output(engine.submitted[0].id, TextDelta("a"))
        engine.fail(engine.submitted[0].id, "replica_lost")
        assert await anext(outputs) == TextDelta("a")
        with pytest.raises(EngineError) as caught:
            await anext(outputs)
    assert caught.value.code == "replica_lost"
    assert engine.cancelled == []


async def test_messages_that_are_too_long_are_the_clients_fault() -> None:
    engine = FakeEngine(pipelines=("llm",))
    with client(engine).request("llm", HELLO) as outputs:
        engine.fail(engine.submitted[0].id, "context_length_exceeded")
        with pytest.raises(ProtocolError) as caught:
            await anext(outputs)
    assert (caught.value.code, caught.value.param) == ("context_length_exceeded", "messages")


async def test_a_full_engine_refuses() -> None:
    engine = FakeEngine(pipelines=("llm",), capacity={"llm": 0})
    with pytest.raises(CapacityError), client(engine).request("llm", HELLO):
        pytest.fail("there was no room")


async def test_a_model_that_is_silent_though_it_has_all_its_input_is_given_up() -> None:
    engine = FakeEngine({"spell": letters})
    impatient = RouteRequests(
        engine, FakeClock(), id_maker(random.Random(1)), timeout_s=30.0, silence_s=0.01
    )
    with pytest.raises(StageTimeout), impatient.request("spell", HELLO) as outputs:
        await anext(outputs)
    assert len(engine.cancelled) == 1


async def test_a_model_that_waits_for_input_may_be_silent_until_it_has_all() -> None:
    engine = FakeEngine({"spell": letters})
    impatient = RouteRequests(
        engine, FakeClock(), id_maker(random.Random(1)), timeout_s=30.0, silence_s=0.0
    )
    with impatient.request("spell", more_input=True) as outputs:
        waiting = asyncio.create_task(anext(outputs))
        for _ in range(10):
            await asyncio.sleep(0)
        assert not waiting.done()
        outputs.finish()
        with pytest.raises(StageTimeout):
            await waiting
