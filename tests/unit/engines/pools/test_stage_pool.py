from __future__ import annotations

import pytest

from duologue.core.errors import CapacityError, EngineError
from duologue.engines.frame_counts import FrameCounts
from duologue.engines.messages import (
    Append,
    Cancel,
    Counted,
    JobEnded,
    JobOutput,
    JobTaken,
    Open,
    Ready,
    WorkerSpec,
)
from duologue.engines.payloads import AudioChunk, TextDelta
from duologue.engines.pools.stage_pool import StageStats
from duologue.engines.ports import Outcome, WorkClass
from tests.unit.engines.pools.pool_scene import scene

LIMIT_BYTES = 64 * 1024
HALF = AudioChunk(bytes(LIMIT_BYTES // 2), 16_000)
"""With what any input counts beside its contents, two are too much."""

COMPLETED, CANCELLED, FAILED = Outcome.COMPLETED, Outcome.CANCELLED, Outcome.FAILED


class TestPlacement:
    async def test_workers_are_told_what_the_stage_says(self) -> None:
        async with scene(
            settings={"reply": "x"}, env={"A": "1"}, work_class=WorkClass.BATCH
        ) as here:
            assert here.workers[0].spec == WorkerSpec(
                name="llm/0",
                runner="script",
                settings={"reply": "x"},
                env={"A": "1"},
                work_class=WorkClass.BATCH,
            )

    async def test_workers_share_out_the_devices(self) -> None:
        async with scene(replicas=4, devices=("a", "b"), settings={"reply": "x"}) as here:
            devices = [worker.spec.settings["device"] for worker in here.workers]
            assert devices == ["a", "b", "a", "b"]
            assert here.workers[1].spec.settings["reply"] == "x"

    async def test_a_job_goes_where_most_room_is(self) -> None:
        async with scene(replicas=2, max_jobs=2) as here:
            here.open("a", "b", "c")
            assert (here.placed(0), here.placed(1)) == (["a", "c"], ["b"])
            here.workers[0].report(JobEnded("a", COMPLETED), JobEnded("c", COMPLETED))
            here.open("d")
            assert here.placed(0) == ["a", "c", "d"]

    async def test_messages_follow_their_job(self) -> None:
        async with scene(replicas=2) as here:
            here.open("a", "b")
            here.pool.send(Append("b", TextDelta("x")))
            assert here.workers[1].sent == [Open("b"), Append("b", TextDelta("x"))]
            assert here.workers[0].sent == [Open("a")]

    async def test_messages_for_a_job_that_has_ended_go_nowhere(self) -> None:
        async with scene() as here:
            here.open("a")
            here.workers[0].report(JobEnded("a", COMPLETED))
            here.pool.send(Cancel("a"))
            here.pool.kill_worker_of("a")
            assert here.workers[0].sent == [Open("a")]
            assert not here.workers[0].killed

    async def test_reports_pass_in_order_and_steps_are_measured(self) -> None:
        async with scene() as here:
            here.open("a")
            said = [JobOutput("a", TextDelta("x")), JobEnded("a", COMPLETED)]
            here.workers[0].report(*said, step_s=0.25)
            here.workers[0].report(*said[:1])
            assert here.observer.reports == [*said, said[0]]
            assert here.observer.steps == [0.25]


class TestQueue:
    async def test_what_finds_no_slot_waits_in_order(self) -> None:
        async with scene(max_jobs=1, queue=2) as here:
            here.open("a", "b", "c")
            assert here.placed() == ["a"]
            here.clock.advance(2)
            here.workers[0].report(JobEnded("a", COMPLETED))
            here.workers[0].report(JobEnded("b", COMPLETED))
            assert here.placed() == ["a", "b", "c"]
            assert here.observer.waits == [0.0, 2.0, 2.0]

    async def test_a_full_queue_refuses_and_says_how_long_it_may_take(self) -> None:
        async with scene(max_jobs=2, queue=1) as here:
            here.open("a", "b", "c")
            with pytest.raises(CapacityError, match=r"2 of 2 slots .* all 1 places") as refusal:
                here.pool.check_room()
            assert 1.0 <= refusal.value.retry_after_s <= 60.0

    async def test_the_stated_wait_follows_how_long_jobs_take(self) -> None:
        async with scene(max_jobs=1, queue=0) as here:
            for number in range(50):
                here.open(f"j{number}")
                here.clock.advance(30)
                here.workers[0].report(JobEnded(f"j{number}", COMPLETED))
            here.open("a")
            with pytest.raises(CapacityError) as refusal:
                here.pool.check_room()
            assert refusal.value.retry_after_s == pytest.approx(30, rel=0.1)

    async def test_a_slot_that_is_freed_is_taken_before_the_end_is_told(self) -> None:
        async with scene(max_jobs=1, queue=1) as here:
            here.open("a", "b")
            seen: list[list[str]] = []
            here.observer.on_job_report = (  # type: ignore[method-assign]
                lambda stage, report: seen.append(here.placed())
            )
            here.workers[0].report(JobEnded("a", COMPLETED))
            assert seen == [["a", "b"]]

    async def test_a_job_that_waits_keeps_its_input(self) -> None:
        async with scene(max_jobs=1, queue=1) as here:
            here.open("a", "b")
            here.pool.send(Append("b", TextDelta("x")))
            here.workers[0].report(JobEnded("a", COMPLETED))
            assert here.workers[0].sent[1:] == [Open("b"), Append("b", TextDelta("x"))]

    async def test_a_job_that_waits_is_cancelled_on_the_spot(self) -> None:
        async with scene(max_jobs=1, queue=1) as here:
            here.open("a", "b")
            here.pool.send(Cancel("b"))
            assert here.ended() == [JobEnded("b", CANCELLED)]
            here.workers[0].report(JobEnded("a", COMPLETED))
            assert here.placed() == ["a"]


class TestInputAllowance:
    async def test_input_that_is_too_much_is_not_sent_and_the_job_must_end(self) -> None:
        async with scene(max_jobs=2, max_input_bytes=LIMIT_BYTES) as here:
            here.open("a", "b")
            for job in ("a", "a", "b"):
                here.pool.send(Append(job, HALF))
            assert here.workers[0].sent[2:] == [Append("a", HALF), Append("b", HALF)]
            ((job, error),) = here.observer.overflows
            assert (job, error.code) == ("a", "rate_limited")

    @pytest.mark.parametrize("slots", [0, 1])
    async def test_what_waits_counts_in_a_slot_as_in_the_queue(self, slots: int) -> None:
        async with scene(max_jobs=1, queue=1, max_input_bytes=LIMIT_BYTES) as here:
            here.open(*["other"][slots:], "a")
            here.pool.send(Append("a", HALF))
            assert here.observer.overflows == []
            here.pool.send(Append("a", HALF))
            assert [job for job, _ in here.observer.overflows] == ["a"]

    async def test_the_input_that_a_job_waited_with_still_counts_in_its_slot(self) -> None:
        async with scene(max_jobs=1, queue=1, max_input_bytes=LIMIT_BYTES) as here:
            here.open("other", "a")
            here.pool.send(Append("a", HALF))
            here.workers[0].report(JobEnded("other", COMPLETED))
            here.pool.send(Append("a", HALF))
            assert [job for job, _ in here.observer.overflows] == ["a"]

    async def test_what_a_step_has_taken_makes_room(self) -> None:
        async with scene(max_input_bytes=LIMIT_BYTES) as here:
            here.open("a")
            for _ in range(5):
                here.pool.send(Append("a", HALF))
                here.workers[0].report(JobTaken("a", 1, HALF.size_bytes()))
            assert here.observer.overflows == []
            assert len(here.workers[0].sent) == 6

    async def test_the_first_input_counts_too(self) -> None:
        async with scene(max_input_bytes=LIMIT_BYTES) as here:
            here.pool.check_room(HALF)
            here.pool.open(Open("a", HALF, input_ended=False))
            here.pool.send(Append("a", HALF))
            assert [job for job, _ in here.observer.overflows] == ["a"]

    async def test_a_first_input_that_is_too_large_is_refused(self) -> None:
        async with scene(max_input_bytes=LIMIT_BYTES) as here:
            with pytest.raises(EngineError, match=r"limit of 65536") as refusal:
                here.pool.check_room(AudioChunk(bytes(LIMIT_BYTES), 16_000))
            assert refusal.value.code == "rate_limited"

    async def test_news_of_a_job_that_has_ended_is_ignored(self) -> None:
        async with scene() as here:
            here.open("a")
            here.workers[0].report(JobEnded("a", COMPLETED))
            here.workers[0].report(JobTaken("a", 1, 0), JobEnded("a", COMPLETED))
            assert here.observer.reports == [JobEnded("a", COMPLETED)]


async def test_a_look_at_it() -> None:
    async with scene(replicas=2, max_jobs=2, queue=3) as here:
        here.open("a", "b", "c", "d", "e")
        assert here.pool.stats() == StageStats(
            stage="llm",
            replicas=2,
            ready=2,
            busy=4,
            queued=1,
            restarts=0,
            slots=4,
            queue=3,
            input_bytes=0,
            input_fill=0.0,
        )


class TestFoundOut:
    """Workers that say how many jobs they hold."""

    async def test_it_takes_no_more_than_its_workers_hold(self) -> None:
        async with scene(warm=False, max_jobs=9, queue=0, replicas=2) as here:
            here.workers[0].report(Ready(0.1, holds=1))
            here.workers[1].report(Ready(0.1, holds=2))
            assert here.pool.slots == here.pool.stats().slots == 3
            for job in "abc":
                here.pool.check_room()
                here.pool.open(Open(job))
            assert [len(replica.jobs) for replica in here.pool.replicas] == [1, 2]
            with pytest.raises(CapacityError, match="3 of 3 slots are taken"):
                here.pool.check_room()

    async def test_a_worker_that_could_hold_more_takes_as_many_as_was_set(self) -> None:
        async with scene(warm=False, max_jobs=2, queue=0) as here:
            here.workers[0].report(Ready(0.1, holds=5))
            assert here.pool.slots == 2

    async def test_a_full_worker_takes_a_job_in_place_of_one_that_was_cancelled(self) -> None:
        async with scene(warm=False, max_jobs=9, queue=0) as here:
            here.workers[0].report(Ready(0.1, holds=1))
            here.pool.open(Open("a"))
            here.pool.send(Cancel("a"))
            here.pool.check_room()
            here.pool.open(Open("b"))
            assert here.pool.stats().queued == 1
            here.workers[0].report(JobEnded("a", CANCELLED))
            assert [set(replica.jobs) for replica in here.pool.replicas] == [{"b"}]

    async def test_what_a_worker_counts_is_told_with_its_name(self) -> None:
        async with scene() as here:
            here.workers[0].report(Counted(FrameCounts(frames=3, late_frames=1)))
            assert here.observer.counted == [("llm/0", FrameCounts(frames=3, late_frames=1))]
