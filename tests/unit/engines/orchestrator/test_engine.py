from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence

import pytest

from duologue.core.errors import CapacityError, EngineError
from duologue.engines.messages import (
    Append,
    Cancel,
    Grant,
    JobEnded,
    JobOutput,
    JobTaken,
    Open,
    Stop,
)
from duologue.engines.orchestrator.engine import Engine
from duologue.engines.payloads import AudioChunk, Payload, TextDelta
from duologue.engines.pipeline import Pipeline, StageSpec
from duologue.engines.pools.replica import ReplicaChange, ReplicaState
from duologue.engines.ports import Ended, Output
from duologue.engines.settings import EngineSettings
from tests.fakes.clock import FakeClock
from tests.fakes.executor import FakeExecutor
from tests.unit.engines.engine_port_contract import OTHER_FENCE, Listener
from tests.unit.engines.orchestrator.engine_scene import (
    CANCELLED,
    COMPLETED,
    FAILED,
    FENCE,
    GRACE_S,
    PIPELINES,
    Scene,
    request,
    scene,
    until,
)


class TestStart:
    async def test_it_is_ready_when_every_worker_is_and_tells_of_each(self) -> None:
        executor = FakeExecutor()
        here = Scene(PIPELINES, FakeClock(), executor)
        heard: list[ReplicaChange] = []
        start = asyncio.create_task(here.engine.start(heard.append))
        await until(lambda: len(executor.workers) == 3)
        for worker in executor.workers:
            assert not start.done()
            worker.warm()
        await start
        assert [(change.name, change.state) for change in heard] == [
            ("llm/0", ReplicaState.READY),
            ("speech.words/0", ReplicaState.READY),
            ("speech.tones/0", ReplicaState.READY),
        ]
        await here.engine.stop()

    async def test_a_worker_that_dies_meanwhile_fails_it_and_the_others_are_stopped(self) -> None:
        executor = FakeExecutor()
        here = Scene(PIPELINES, FakeClock(), executor)
        start = asyncio.create_task(here.engine.start())
        await until(lambda: len(executor.workers) == 3)
        executor.workers[1].lose("model.bin is not there", code="invalid_config")
        with pytest.raises(EngineError, match=r"speech.words/0 .* model.bin is not there") as error:
            await start
        assert error.value.code == "invalid_config"
        assert executor.workers[0].killed

    async def test_it_can_be_given_up(self) -> None:
        executor = FakeExecutor()
        here = Scene(PIPELINES, FakeClock(), executor)
        start = asyncio.create_task(here.engine.start())
        await until(lambda: len(executor.workers) == 3)
        start.cancel()
        with pytest.raises(asyncio.CancelledError):
            await start
        assert all(worker.killed for worker in executor.workers)

    async def test_a_stage_may_run_where_only_its_caller_knows_how(self) -> None:
        moon = FakeExecutor()
        stage = StageSpec(name="llm", runner="script", executor="moon")
        pipelines = {"llm": Pipeline(name="llm", stages=(stage,))}
        engine = Engine(pipelines, EngineSettings(stop_timeout_s=0.01), executors={"moon": moon})
        async with asyncio.TaskGroup() as group:
            group.create_task(engine.start())
            await until(lambda: bool(moon.workers))
            moon.workers[0].warm()
        engine.submit(request("a"), Listener())
        assert moon.workers[0].sent == [Open("a")]
        await engine.stop()

    async def test_an_engine_without_pipelines_starts_at_once(self) -> None:
        engine = Engine({}, EngineSettings())
        await engine.start()
        assert await engine.stop()

    async def test_one_that_is_not_running_takes_no_requests(self) -> None:
        engine = Engine(PIPELINES, EngineSettings())
        assert engine.has_pipeline("llm")
        with pytest.raises(EngineError) as error:
            engine.submit(request("r"), Listener())
        assert error.value.code == "server_shutting_down"
        assert await engine.stop(), "there is nothing to stop"


class TestStop:
    async def test_it_ends_every_request_and_asks_every_worker_to_leave(self) -> None:
        async with scene() as here:
            here.submit("a")
            here.submit("b", "speech")
            stop = asyncio.create_task(here.engine.stop())
            await until(lambda: Stop() in here.sent("llm"))
            ends = {event.request_id: event for event in here.listener.events}
            assert {end.code for end in ends.values() if isinstance(end, Ended)} == {
                "server_shutting_down"
            }
            for stage in ("llm", "speech.words", "speech.tones"):
                assert Stop() in here.sent(stage)
                here.worker(stage).lose("told to stop")
            assert await stop
            assert here.engine.stats().requests == 0

    async def test_a_subscriber_that_tries_again_at_once_is_refused(self) -> None:
        async with scene() as here:
            refusals: list[EngineError] = []

            class Persistent(Listener):
                def on_engine_event(self, event: object) -> None:
                    try:
                        here.engine.submit(request("again"), self)
                    except EngineError as refusal:
                        refusals.append(refusal)

            here.engine.submit(request("a"), Persistent())
            await here.engine.stop()
            assert [refusal.code for refusal in refusals] == ["server_shutting_down"]

    async def test_it_says_when_a_worker_had_to_be_killed(self) -> None:
        async with scene() as here:
            here.worker("llm")
            assert not await here.engine.stop()
            assert here.worker("llm").killed


class TestRequests:
    async def test_messages_go_to_the_stage_and_events_to_the_subscriber(self) -> None:
        async with scene() as here:
            here.submit("a", more_input=True, credit=3)
            here.engine.append("a", TextDelta("x"))
            here.engine.grant("a", 2)
            assert here.sent("llm") == [
                Open("a", None, input_ended=False, credit=3),
                Append("a", TextDelta("x")),
                Grant("a", 2),
            ]
            here.say("llm", JobOutput("a", TextDelta("y")), JobEnded("a", COMPLETED))
            assert here.listener.events == [
                Output("a", FENCE, TextDelta("y")),
                Ended("a", FENCE, COMPLETED),
            ]

    async def test_two_stages_are_joined_by_credit(self) -> None:
        async with scene() as here:
            here.submit("a", "speech", first=TextDelta("x"))
            here.say("speech.words", JobOutput("a", TextDelta("w")))
            assert here.sent("speech.tones")[-1] == Append("a", TextDelta("w"))
            here.say("speech.tones", JobTaken("a", 1, 257))
            assert here.sent("speech.words")[-1] == Grant("a", 1)

    async def test_a_request_is_refused_whole_if_one_of_its_stages_is_full(self) -> None:
        async with scene() as here:
            here.submit("a", "speech")
            with pytest.raises(CapacityError, match=r"speech\.tones"):
                here.submit("b", "speech")
            assert Open("b", credit=1) not in here.sent("speech.words")
            assert here.engine.stats().requests == 1

    async def test_a_subscriber_may_act_on_an_event_at_once(self) -> None:
        async with scene() as here:

            class Impatient(Listener):
                def on_engine_event(self, event: object) -> None:
                    super().on_engine_event(event)  # type: ignore[arg-type]
                    if isinstance(event, Output):
                        here.engine.cancel("a")
                        here.engine.submit(request("b"), here.listener)

            impatient = Impatient()
            here.engine.submit(request("a"), impatient)
            here.say("llm", JobOutput("a", TextDelta("one")), JobOutput("a", TextDelta("two")))
            here.end("llm", "a", CANCELLED)
            assert impatient.events == [
                Output("a", FENCE, TextDelta("one")),
                Ended("a", FENCE, CANCELLED),
            ]
            assert Open("b") in here.sent("llm")

    async def test_a_cancel_that_matches_nothing_is_nothing(self) -> None:
        async with scene() as here:
            here.engine.cancel("nobody")
            assert here.sent("llm") == []

    @pytest.mark.parametrize("waits", [False, True])
    async def test_a_request_that_sends_more_than_may_wait_ends_alone(self, waits: bool) -> None:
        """The same with a slot and without one."""
        async with scene() as here:
            others = ["b", "c"] if waits else ["b"]
            for request_id in (*others, "a"):
                here.submit(request_id, more_input=True)
            for _ in range(40):
                here.engine.append("a", AudioChunk(bytes(2**19), 16_000))
            assert here.listener.events == [], "nothing is delivered during a call"
            await until(lambda: bool(here.listener.events))
            (ended,) = here.listener.events
            assert (ended.request_id, ended.outcome, ended.code) == ("a", FAILED, "rate_limited")
            assert re.match("stage llm: .* bytes of input wait", ended.message)
            here.engine.append("b", TextDelta("x"))
            assert here.sent("llm")[-1] == Append("b", TextDelta("x"))
            appends = [each for each in here.sent("llm") if isinstance(each, Append)]
            assert len(appends) == (1 if waits else 32)
            assert here.sent("llm").count(Cancel("a")) == (0 if waits else 1)
            if not waits:
                here.end("llm", "a", CANCELLED)
            assert here.engine.stats().requests == len(others)

    async def test_a_stage_that_is_handed_too_much_by_the_one_before_fails_its_request(
        self,
    ) -> None:
        async with scene(edges={"forward": lambda payload: [payload] * 40}) as here:
            here.submit("a", "speech")
            here.say("speech.words", JobOutput("a", AudioChunk(bytes(2**19), 16_000)))
            (ended,) = here.listener.events
            assert (ended.outcome, ended.code) == (FAILED, "rate_limited")
            for stage in ("speech.words", "speech.tones"):
                assert here.sent(stage).count(Cancel("a")) == 1
                here.end(stage, "a", CANCELLED)
            assert here.engine.stats().requests == 0

    async def test_a_request_that_begins_with_too_much_is_refused(self) -> None:
        async with scene() as here:
            with pytest.raises(EngineError) as refusal:
                here.submit("a", first=AudioChunk(bytes(2**25), 16_000))
            assert refusal.value.code == "rate_limited"
            assert here.engine.stats().requests == 0

    async def test_an_id_is_taken_until_its_end_has_been_delivered(self) -> None:
        """A cancel ends what waits for a slot at once; its subscriber is told a moment later."""
        async with scene() as here:
            for request_id in ("a", "b", "c"):
                here.submit(request_id)
            here.engine.cancel("c")
            with pytest.raises(EngineError, match="the end of the request c is on its way"):
                here.submit("c")
            await until(lambda: bool(here.listener.ends("c")))
            other = Listener()
            here.engine.submit(request("c"), other)
            here.end("llm", "a")
            here.say("llm", JobOutput("c", TextDelta("x")))
            assert other.outputs("c") == [TextDelta("x")]
            assert here.listener.of("c") == [Ended("c", FENCE, CANCELLED)]

    async def test_an_end_that_waits_to_be_delivered_takes_a_new_fence(self) -> None:
        async with scene() as here:
            for request_id in ("a", "b", "c"):
                here.submit(request_id)
            here.engine.cancel("c")
            here.engine.refence("c", OTHER_FENCE)
            await until(lambda: bool(here.listener.ends("c")))
            assert here.listener.of("c") == [Ended("c", OTHER_FENCE, CANCELLED)]

    async def test_an_edge_that_refuses_an_output_fails_the_request(self) -> None:
        def refuse(payload: Payload) -> Sequence[Payload]:
            raise EngineError("that cannot be spoken", code="unspeakable")

        async with scene(edges={"forward": refuse}) as here:
            here.submit("a", "speech", first=TextDelta("x"))
            here.say("speech.words", JobOutput("a", TextDelta("w")))
            (ended,) = here.listener.ends("a")
            assert (ended.outcome, ended.code) == (FAILED, "unspeakable")
            assert Cancel("a") in here.sent("speech.words")


class TestTime:
    async def test_a_request_without_an_answer_fails_at_its_deadline(self) -> None:
        async with scene() as here:
            here.submit("a", deadline_s=here.clock.now() + 0.001)
            here.clock.advance(0.002)
            await until(lambda: bool(here.listener.events))
            (ended,) = here.listener.ends("a")
            assert (ended.outcome, ended.code) == (FAILED, "stage_timeout")
            assert here.sent("llm")[-1] == Cancel("a")
            assert not here.worker("llm").killed

    async def test_a_worker_that_hangs_beyond_the_grace_is_killed(self) -> None:
        async with scene() as here:
            here.submit("a")
            here.engine.cancel("a")
            here.clock.advance(GRACE_S)
            await until(lambda: bool(here.listener.ends("a")))
            assert here.worker("llm").killed
            assert here.listener.ends("a") == [Ended("a", FENCE, CANCELLED)]
