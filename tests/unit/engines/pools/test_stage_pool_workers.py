"""What a stage pool does when its workers keep silent, are lost, or sleep."""

from __future__ import annotations

import pytest

from duologue.core.errors import CapacityError, ReplicaLost
from duologue.engines.messages import Append, Cancel, JobEnded, Ready, Rested, Wake
from duologue.engines.payloads import TextDelta
from duologue.engines.pools.replica import ReplicaState
from duologue.engines.pools.stage_life import Fill, Finished, Tell
from duologue.engines.ports import Outcome
from tests.unit.engines.pools.pool_scene import scene

COMPLETED, CANCELLED, FAILED = Outcome.COMPLETED, Outcome.CANCELLED, Outcome.FAILED


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
