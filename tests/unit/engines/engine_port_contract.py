"""What every engine promises, whoever plays it. Run by ``test_engine_port_contract``."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

import pytest

from duologue.core.errors import CapacityError, EngineError
from duologue.core.fence import SESSION_LANE, Fence, Lane
from duologue.engines.payloads import Payload, SpeakText, TextDelta
from duologue.engines.ports import Ended, EngineEvent, EnginePort, Outcome, Output, Request

FENCE = Fence("session", SESSION_LANE, 3)
OTHER_FENCE = Fence("session", Lane("response_1"), 0)


class Listener:
    """Keeps what comes out of requests."""

    def __init__(self) -> None:
        self.events: list[EngineEvent] = []
        self.news = asyncio.Event()

    def on_engine_event(self, event: EngineEvent) -> None:
        self.events.append(event)
        self.news.set()

    def of(self, request_id: str) -> list[EngineEvent]:
        return [event for event in self.events if event.request_id == request_id]

    def outputs(self, request_id: str = "r") -> list[Payload]:
        return [event.payload for event in self.of(request_id) if isinstance(event, Output)]

    def ends(self, request_id: str = "r") -> list[Ended]:
        return [event for event in self.of(request_id) if isinstance(event, Ended)]

    def text(self, request_id: str = "r") -> str:
        outputs = self.outputs(request_id)
        return "".join(each.text for each in outputs if isinstance(each, TextDelta))


class Harness(Protocol):
    """An engine with the pipelines that the contract speaks of.

    ``echo`` says the words of each input, one at a time; ``narrow`` does so for one request at a
    time and lets none wait; ``tone`` speaks clauses; ``faulty`` fails at its second word.
    """

    engine: EnginePort

    async def until(self, done: Callable[[], bool], listener: Listener) -> None:
        """Let the engine work until ``done``."""
        ...

    async def settle(self) -> None:
        """Let the engine do all that it can do now."""
        ...


def request(pipeline: str, request_id: str = "r", text: str = "", **fields: object) -> Request:
    first = TextDelta(text) if text else None
    return Request(request_id, pipeline, FENCE, first=first, **fields)


class EnginePortContract:
    """Inherit, and provide the fixture ``harness``."""

    async def test_a_request_is_answered_in_order_and_ends_once(self, harness: Harness) -> None:
        listener = Listener()
        harness.engine.submit(request("echo", text="one two three"), listener)
        await harness.until(lambda: bool(listener.ends()), listener)
        assert listener.text() == "one two three"
        assert [type(event) for event in listener.events] == [Output, Output, Output, Ended]
        assert listener.ends() == [Ended("r", FENCE, Outcome.COMPLETED)]

    async def test_every_event_carries_the_fence_of_its_request(self, harness: Harness) -> None:
        listener = Listener()
        harness.engine.submit(request("echo", text="one two"), listener)
        await harness.until(lambda: bool(listener.ends()), listener)
        assert {event.fence for event in listener.events} == {FENCE}

    async def test_a_stream_answers_what_is_appended_until_it_is_finished(
        self, harness: Harness
    ) -> None:
        listener = Listener()
        harness.engine.submit(request("echo", more_input=True), listener)
        harness.engine.append("r", TextDelta("one"))
        await harness.until(lambda: len(listener.outputs()) == 1, listener)
        harness.engine.append("r", TextDelta("two"))
        await harness.until(lambda: len(listener.outputs()) == 2, listener)
        assert listener.ends() == []
        harness.engine.append("r", TextDelta("three"))
        harness.engine.finish_input("r")
        await harness.until(lambda: bool(listener.ends()), listener)
        assert listener.text() == "onetwothree"
        assert listener.ends() == [Ended("r", FENCE, Outcome.COMPLETED)]

    async def test_an_idle_stream_ends_when_its_input_does(self, harness: Harness) -> None:
        listener = Listener()
        harness.engine.submit(request("echo", more_input=True), listener)
        harness.engine.finish_input("r")
        await harness.until(lambda: bool(listener.ends()), listener)
        assert listener.events == [Ended("r", FENCE, Outcome.COMPLETED)]

    async def test_a_cancelled_request_ends_cancelled_and_is_silent_after(
        self, harness: Harness
    ) -> None:
        listener = Listener()
        harness.engine.submit(request("echo", text="one " * 500, credit=1), listener)
        await harness.until(lambda: len(listener.outputs()) == 1, listener)
        harness.engine.cancel("r")
        await harness.until(lambda: bool(listener.ends()), listener)
        harness.engine.grant("r", 1000)
        await harness.settle()
        assert listener.ends() == [Ended("r", FENCE, Outcome.CANCELLED)]
        assert listener.events[-1] == listener.ends()[0]

    async def test_a_cancel_overtakes_appends(self, harness: Harness) -> None:
        listener = Listener()
        harness.engine.submit(request("echo", more_input=True), listener)
        for _ in range(100):
            harness.engine.append("r", TextDelta("word"))
        harness.engine.cancel("r")
        await harness.until(lambda: bool(listener.ends()), listener)
        assert listener.events == [Ended("r", FENCE, Outcome.CANCELLED)]

    async def test_nothing_is_delivered_during_a_call(self, harness: Harness) -> None:
        listener = Listener()
        harness.engine.submit(request("narrow", text="one"), listener)
        assert listener.events == []
        harness.engine.cancel("r")
        assert listener.events == []
        await harness.until(lambda: bool(listener.ends()), listener)

    async def test_news_for_a_request_that_has_ended_changes_nothing(
        self, harness: Harness
    ) -> None:
        listener = Listener()
        harness.engine.submit(request("echo", text="one", more_input=False), listener)
        await harness.until(lambda: bool(listener.ends()), listener)
        before = list(listener.events)
        harness.engine.append("r", TextDelta("two"))
        harness.engine.finish_input("r")
        harness.engine.cancel("r")
        harness.engine.grant("r", 5)
        harness.engine.subscribe("r", Listener())
        harness.engine.refence("r", OTHER_FENCE)
        await harness.settle()
        assert listener.events == before

    async def test_an_id_is_free_again_after_its_end(self, harness: Harness) -> None:
        for text in ("one", "two"):
            listener = Listener()
            harness.engine.submit(request("echo", text=text), listener)
            await harness.until(lambda heard=listener: bool(heard.ends()), listener)
            assert listener.text() == text

    async def test_an_id_in_use_is_refused(self, harness: Harness) -> None:
        listener, other = Listener(), Listener()
        harness.engine.submit(request("echo", more_input=True), listener)
        with pytest.raises(EngineError):
            harness.engine.submit(request("echo", text="one"), other)
        harness.engine.append("r", TextDelta("two"))
        await harness.until(lambda: bool(listener.outputs()), listener)
        assert other.events == []

    async def test_without_credit_nothing_comes_and_a_grant_goes_on(self, harness: Harness) -> None:
        listener = Listener()
        harness.engine.submit(request("echo", text="one two three four", credit=2), listener)
        await harness.until(lambda: len(listener.outputs()) == 2, listener)
        await harness.settle()
        assert listener.text() == "one two"
        harness.engine.grant("r", 1)
        await harness.until(lambda: len(listener.outputs()) == 3, listener)
        await harness.settle()
        assert listener.text() == "one two three"
        harness.engine.grant("r", 10)
        await harness.until(lambda: bool(listener.ends()), listener)
        assert listener.text() == "one two three four"

    async def test_credit_for_audio_is_milliseconds(self, harness: Harness) -> None:
        listener = Listener()
        clause = SpeakText("ten letter", text_end=10)  # 600 ms in chunks of 100 ms
        harness.engine.submit(Request("r", "tone", FENCE, first=clause, credit=250), listener)
        await harness.until(lambda: len(listener.outputs()) == 3, listener)
        await harness.settle()
        assert len(listener.outputs()) == 3
        harness.engine.grant("r", 1000)
        await harness.until(lambda: bool(listener.ends()), listener)
        assert len(listener.outputs()) == 7  # six chunks and a mark

    async def test_a_full_pipeline_refuses_and_has_room_again_after_an_end(
        self, harness: Harness
    ) -> None:
        listener = Listener()
        harness.engine.submit(request("narrow", more_input=True), listener)
        with pytest.raises(CapacityError) as refusal:
            harness.engine.submit(request("narrow", "other", "two"), listener)
        assert refusal.value.retry_after_s > 0
        harness.engine.cancel("r")
        await harness.until(lambda: bool(listener.ends()), listener)
        harness.engine.submit(request("narrow", "other", "two"), listener)
        await harness.until(lambda: bool(listener.ends("other")), listener)
        assert listener.text("other") == "two"

    async def test_a_failure_ends_the_request_alone(self, harness: Harness) -> None:
        listener = Listener()
        harness.engine.submit(request("echo", "good", more_input=True), listener)
        harness.engine.submit(request("faulty", "bad", "one two three"), listener)
        await harness.until(lambda: bool(listener.ends("bad")), listener)
        assert listener.text("bad") == "one"
        (ended,) = listener.ends("bad")
        assert (ended.outcome, ended.code) == (Outcome.FAILED, "stage_failed")
        harness.engine.append("good", TextDelta("fine"))
        await harness.until(lambda: listener.text("good") == "fine", listener)

    async def test_requests_of_many_callers_do_not_mix(self, harness: Harness) -> None:
        listeners = [Listener() for _ in range(20)]
        for number, listener in enumerate(listeners):
            harness.engine.submit(request("echo", f"r{number}", f"word{number} " * 3), listener)
        for number, listener in enumerate(listeners):
            await harness.until(lambda heard=listener: bool(heard.events[3:]), listener)
            assert listener.text(f"r{number}") == " ".join([f"word{number}"] * 3)
            assert {event.request_id for event in listener.events} == {f"r{number}"}

    async def test_another_subscriber_gets_the_further_events(self, harness: Harness) -> None:
        first, second = Listener(), Listener()
        harness.engine.submit(request("echo", text="one", more_input=True), first)
        await harness.until(lambda: bool(first.outputs()), first)
        harness.engine.subscribe("r", second)
        harness.engine.append("r", TextDelta("two"))
        harness.engine.finish_input("r")
        await harness.until(lambda: bool(second.ends()), second)
        assert (first.text(), second.text()) == ("one", "two")
        assert first.ends() == []

    async def test_a_new_fence_is_on_all_that_follows(self, harness: Harness) -> None:
        listener = Listener()
        harness.engine.submit(request("echo", text="one", more_input=True), listener)
        await harness.until(lambda: bool(listener.outputs()), listener)
        harness.engine.refence("r", OTHER_FENCE)
        harness.engine.append("r", TextDelta("two"))
        harness.engine.finish_input("r")
        await harness.until(lambda: bool(listener.ends()), listener)
        assert listener.events == [
            Output("r", FENCE, TextDelta("one")),
            Output("r", OTHER_FENCE, TextDelta("two")),
            Ended("r", OTHER_FENCE, Outcome.COMPLETED),
        ]

    async def test_a_new_fence_is_on_an_end_that_was_decided_before(self, harness: Harness) -> None:
        listener = Listener()
        harness.engine.submit(request("echo", more_input=True), listener)
        harness.engine.cancel("r")
        harness.engine.refence("r", OTHER_FENCE)
        await harness.until(lambda: bool(listener.ends()), listener)
        assert listener.events == [Ended("r", OTHER_FENCE, Outcome.CANCELLED)]

    async def test_a_new_fence_changes_no_other_request(self, harness: Harness) -> None:
        listener = Listener()
        harness.engine.submit(request("echo", "r", "one"), listener)
        harness.engine.submit(request("echo", "other", "one"), listener)
        harness.engine.refence("other", OTHER_FENCE)
        await harness.until(lambda: len(listener.events) == 4, listener)
        assert {event.fence for event in listener.of("r")} == {FENCE}
        assert {event.fence for event in listener.of("other")} == {OTHER_FENCE}

    async def test_unknown_pipelines_are_refused(self, harness: Harness) -> None:
        assert harness.engine.has_pipeline("echo")
        assert not harness.engine.has_pipeline("nosuch")
        with pytest.raises(EngineError, match="nosuch"):
            harness.engine.submit(request("nosuch", text="one"), Listener())
