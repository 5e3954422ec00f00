from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from duologue.core.errors import CapacityError, EngineError, ReplicaLost
from duologue.engines.frame_counts import FrameCounts
from duologue.engines.messages import (
    Append,
    Cancel,
    Counted,
    JobEnded,
    JobOutput,
    JobReport,
    JobTaken,
    Open,
    Ready,
    Rested,
    Wake,
    WorkerSpec,
)
from duologue.engines.payloads import AudioChunk, TextDelta
from duologue.engines.pipeline import StageSpec
from duologue.engines.pools.replica import ReplicaChange, ReplicaState
from duologue.engines.pools.stage_life import Effect, Fill, Finished, Tell
from duologue.engines.pools.stage_pool import StagePool, StageStats
from duologue.engines.ports import Outcome, WorkClass
from duologue.engines.settings import EngineSettings
from tests.fakes.clock import FakeClock
from tests.fakes.executor import FakeExecutor, FakeWorker

LIMIT_BYTES = 64 * 1024
HALF = AudioChunk(bytes(LIMIT_BYTES // 2), 16_000)
"""With what any input counts beside its contents, two are too much."""

COMPLETED, CANCELLED, FAILED = Outcome.COMPLETED, Outcome.CANCELLED, Outcome.FAILED


class Observer:
    """Keeps what a pool says."""

    def __init__(self) -> None:
        self.reports: list[JobReport] = []
        self.overflows: list[tuple[str, EngineError]] = []
        self.steps: list[float] = []
        self.waits: list[float] = []
        self.changes: list[ReplicaChange] = []
        self.effects: list[Effect] = []
        self.counted: list[tuple[str, FrameCounts]] = []

    def on_life(self, stage: str, effects: Sequence[Effect]) -> None:
        assert stage == "llm"
        self.effects += effects

    def on_job_report(self, stage: str, report: JobReport) -> None:
        assert stage == "llm"
        self.reports.append(report)

    def on_overflow(self, stage: str, job: str, error: EngineError) -> None:
        assert stage == "llm"
        self.overflows.append((job, error))

    def on_step(self, stage: str, duration_s: float) -> None:
        self.steps.append(duration_s)

    def on_placed(self, stage: str, waited_s: float) -> None:
        self.waits.append(waited_s)

    def on_counted(self, worker: str, counts: FrameCounts) -> None:
        self.counted.append((worker, counts))

    def on_replica_change(self, stage: str, change: ReplicaChange) -> None:
        assert stage == "llm"
        self.changes.append(change)


class Scene:
    """A pool whose workers are played by the test."""

    def __init__(self, **spec: object) -> None:
        self.executor = FakeExecutor()
        self.observer = Observer()
        self.clock = FakeClock()
        self.spec = StageSpec(name="llm", runner="script", **spec)
        # Restarts are for the replica's own tests: here a lost worker stays away.
        settings = EngineSettings(restart_backoff_s=1000)
        self.pool = StagePool("llm", self.spec, self.executor, self.observer, settings, self.clock)

    @property
    def workers(self) -> list[FakeWorker]:
        return self.executor.workers

    def open(self, *jobs: str) -> None:
        for job in jobs:
            self.pool.check_room()
            self.pool.open(Open(job))

    def placed(self, number: int = 0) -> list[str]:
        sent = self.workers[number].sent
        return [message.job for message in sent if isinstance(message, Open)]

    def ended(self) -> list[JobEnded]:
        return [report for report in self.observer.reports if isinstance(report, JobEnded)]


@asynccontextmanager
async def scene(*, warm: bool = True, **spec: object) -> AsyncIterator[Scene]:
    made = Scene(**spec)
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(replica.run()) for replica in made.pool.replicas]
        await asyncio.sleep(0)
        assert len(made.workers) == made.spec.replicas
        if warm:
            for worker in made.workers:
                worker.warm()
        try:
            yield made
        finally:
            for task in tasks:
                task.cancel()


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


class TestSuspicion:
    async def test_a_worker_with_an_unanswered_cancel_gets_no_new_jobs(self) -> None:
        async with scene(replicas=2, max_jobs=4) as here:
            here.open("a", "b")
            here.pool.send(Cancel("a"))
            here.open("c", "d")
            assert (here.placed(0), here.placed(1)) == (["a"], ["b", "c", "d"])

    async def test_new_jobs_wait_for_its_answer_in_the_slots_it_has(self) -> None:
        async with scene(max_jobs=3, queue=0) as here:
            here.open("a")
            here.pool.send(Cancel("a"))
            here.open("b", "c")
            with pytest.raises(CapacityError):
                here.pool.check_room()
            assert here.placed() == ["a"]
            here.workers[0].report(JobEnded("a", CANCELLED))
            assert here.placed() == ["a", "b", "c"]

    async def test_they_outlive_it_if_it_never_answers(self) -> None:
        async with scene(max_jobs=3) as here:
            here.open("a")
            here.pool.send(Cancel("a"))
            here.open("b")
            here.pool.kill_worker_of("a")
            assert [ended.job for ended in here.ended()] == ["a"]
            assert here.pool.stats().queued == 1


class TestLoss:
    async def test_the_jobs_of_a_lost_worker_fail_and_the_others_go_on(self) -> None:
        async with scene(replicas=2) as here:
            here.open("a", "b")
            here.workers[0].lose("segfault")
            (ended,) = here.ended()
            assert (ended.job, ended.outcome, ended.code) == ("a", FAILED, "replica_lost")
            assert "segfault" in ended.message
            here.pool.send(Append("b", TextDelta("x")))
            assert here.workers[1].sent[-1] == Append("b", TextDelta("x"))

    async def test_what_comes_while_a_worker_starts_waits_in_slots_to_be(self) -> None:
        async with scene(warm=False, max_jobs=3, queue=1) as here:
            here.open("a", "b", "c", "d")
            with pytest.raises(CapacityError):
                here.pool.check_room()
            here.workers[0].warm()
            assert here.placed() == ["a", "b", "c"]

    async def test_after_a_loss_new_jobs_wait_for_the_next_worker(self) -> None:
        async with scene() as here:
            here.workers[0].lose()
            here.open("a")
            assert here.ended() == []
            assert here.pool.stats().queued == 1

    async def test_when_every_worker_fails_to_start_all_is_refused(self) -> None:
        async with scene(warm=False, replicas=2) as here:
            here.open("a")
            here.workers[0].lose("no file", code="invalid_config")
            assert here.ended() == []
            here.workers[1].lose("no file", code="invalid_config")
            (ended,) = here.ended()
            assert ended.code == "replica_lost"
            assert "invalid_config: no file" in ended.message
            with pytest.raises(ReplicaLost, match="llm"):
                here.pool.check_room()

    async def test_the_worker_of_a_job_that_hangs_is_killed(self) -> None:
        async with scene(replicas=2) as here:
            here.open("a", "b")
            here.pool.kill_worker_of("b")
            assert [worker.killed for worker in here.workers] == [False, True]
            assert [ended.job for ended in here.ended()] == ["b"]

    async def test_changes_are_passed_on(self) -> None:
        async with scene() as here:
            here.workers[0].lose()
            states = [change.state for change in here.observer.changes]
            assert states == [ReplicaState.READY, ReplicaState.STARTING]


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


class TestLife:
    async def test_a_stage_that_sleeps_refuses_and_says_when_to_come_back(self) -> None:
        async with scene() as made:
            made.pool.life.sleep(2, abort=False)
            with pytest.raises(CapacityError, match="going to sleep") as refused:
                made.pool.check_room()
            assert refused.value.code == "stage_asleep"
            made.workers[0].report(Rested(2))
            with pytest.raises(CapacityError, match="is asleep"):
                made.pool.check_room()
            assert any(isinstance(each, Finished) for each in made.observer.effects)

    async def test_one_that_wakes_on_request_queues_what_comes_and_begins_to_wake(self) -> None:
        async with scene(wake_on_request=True, queue=0) as made:
            made.pool.life.sleep(2, abort=False)
            made.workers[0].report(Rested(2))
            made.open("a")
            assert made.placed() == []
            assert made.observer.effects[-1] == Tell("llm/0", Wake())
            with pytest.raises(CapacityError):
                made.pool.check_room()
            made.workers[0].report(Rested(0))
            assert Fill() in made.observer.effects
            made.pool.fill()
            assert made.placed() == ["a"]

    async def test_in_a_pause_what_comes_waits_as_far_as_the_queue_has_room(self) -> None:
        async with scene(queue=1) as made:
            made.pool.life.pause(abort=False, refuse=False)
            made.open("a")
            assert made.placed() == []
            with pytest.raises(CapacityError) as refused:
                made.pool.check_room()
            assert refused.value.code == "stage_paused"
            made.pool.life.resume()
            made.pool.fill()
            assert made.placed() == ["a"]

    async def test_a_pause_may_refuse_at_once(self) -> None:
        async with scene() as made:
            made.pool.life.pause(abort=False, refuse=True)
            with pytest.raises(CapacityError, match="is paused") as refused:
                made.pool.check_room()
            assert refused.value.code == "stage_paused"

    async def test_the_last_job_to_end_completes_a_pause(self) -> None:
        async with scene(max_jobs=2) as made:
            made.open("a", "b")
            made.pool.life.pause(abort=False, refuse=False)
            made.workers[0].report(JobEnded("a", COMPLETED))
            assert made.observer.effects == []
            made.workers[0].report(JobEnded("b", COMPLETED))
            assert [type(each) for each in made.observer.effects] == [Finished]

    async def test_jobs_that_are_lost_have_ended_too(self) -> None:
        async with scene() as made:
            made.open("a")
            made.pool.life.sleep(2, abort=False)
            made.workers[0].lose()
            assert made.pool.starts_asleep(made.pool.replicas[0])

    async def test_a_replica_that_sleeps_while_others_work_gets_no_job(self) -> None:
        async with scene(replicas=2, warm=False) as made:
            made.workers[0].report(Ready(took_s=0.0, level=2))
            made.workers[1].warm()
            assert made.observer.effects == [Tell("llm/0", Wake())]
            made.open("a")
            assert (made.placed(0), made.placed(1)) == ([], ["a"])

    async def test_it_tells_its_replicas_and_is_rid_of_them(self) -> None:
        async with scene() as made:
            made.pool.tell("llm/0", Wake())
            assert made.workers[0].sent == [Wake()]
            made.pool.kill("llm/0")
            assert made.workers[0].killed


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
