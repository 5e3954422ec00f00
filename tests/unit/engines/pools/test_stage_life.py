from __future__ import annotations

import pytest

from duologue.engines.lifecycle_port import SLEEP_UNSUPPORTED
from duologue.engines.messages import Pause, Rested, Sleep, Wake
from duologue.engines.pools.stage_life import (
    EndJobs,
    Fill,
    Finished,
    Kill,
    LifeState,
    StageLife,
    Tell,
)

A, B = "llm/0", "llm/1"
AWAKE, ASLEEP, FAILED = LifeState.AWAKE, LifeState.ASLEEP, LifeState.FAILED
SLEEPING, WAKING = LifeState.GOING_TO_SLEEP, LifeState.WAKING


class Scene:
    """A stage of two, both there."""

    def __init__(self, *, running: bool = False, waiting: bool = False) -> None:
        self.running, self.waiting = running, waiting
        self.life = StageLife([A, B], lambda: self.running, lambda: self.waiting)
        self.life.on_ready(A, 0)
        self.life.on_ready(B, 0)

    def asleep(self, level: int = 2) -> Scene:
        self.life.sleep(level, abort=False)
        self.life.on_rested(A, Rested(level))
        self.life.on_rested(B, Rested(level))
        assert self.life.state is ASLEEP
        return self


def finished(effects: list[object], transition: str) -> Finished:
    (found,) = [each for each in effects if isinstance(each, Finished)]
    assert found.transition == transition
    return found


def test_a_stage_sleeps_when_all_replicas_have_acknowledged() -> None:
    life = Scene().life
    assert life.sleep(2, abort=False) == [Tell(A, Sleep(2)), Tell(B, Sleep(2))]
    assert (life.state, life.takes_work) == (SLEEPING, False)
    assert life.on_rested(A, Rested(2, freed_bytes=5)) == []
    done = finished(life.on_rested(B, Rested(2, freed_bytes=7)), "sleep")
    assert [ack.rested.freed_bytes for ack in done.acks if ack.rested] == [5, 7]
    assert (life.state, life.level, done.failed) == (ASLEEP, 2, False)


def test_it_wakes_when_all_replicas_have_acknowledged_and_work_begins_again() -> None:
    life = Scene().asleep().life
    assert life.wake() == [Tell(A, Wake()), Tell(B, Wake())]
    assert life.on_rested(B, Rested(0)) == []
    effects = life.on_rested(A, Rested(0))
    assert not finished(effects, "wake").failed
    assert effects[-1] == Fill()
    assert life.takes_work


def test_work_ends_before_replicas_are_told() -> None:
    scene = Scene(running=True, waiting=True)
    assert scene.life.sleep(1, abort=False) == []
    scene.running = False
    assert scene.life.on_idle() == [], "what waits is to be done as well"
    scene.waiting = False
    assert scene.life.on_idle() == [Tell(A, Sleep(1)), Tell(B, Sleep(1))]


def test_work_is_aborted_where_that_is_ordered_also_by_a_second_order() -> None:
    scene = Scene(running=True)
    assert scene.life.sleep(1, abort=False) == []
    assert scene.life.sleep(2, abort=True) == [EndJobs("stage_asleep", running=True, queued=True)]
    scene.running = False
    assert scene.life.on_idle() == [Tell(A, Sleep(2)), Tell(B, Sleep(2))]


def test_work_that_is_overdue_is_aborted() -> None:
    scene = Scene(running=True)
    scene.life.sleep(1, abort=False)
    assert scene.life.on_overdue() == [EndJobs("stage_asleep", running=True, queued=True)]
    other = Scene(running=True)
    other.life.pause(abort=False, refuse=False)
    assert other.life.on_overdue() == [EndJobs("stage_paused", running=True, queued=False)]


def test_two_callers_get_one_transition() -> None:
    life = Scene().life
    life.sleep(2, abort=False)
    assert life.sleep(2, abort=False) == []
    life.on_rested(A, Rested(2))
    finished(life.on_rested(B, Rested(2)), "sleep")
    life.wake()
    assert life.wake() == []


def test_what_is_so_already_is_skipped() -> None:
    scene = Scene()
    assert all(ack.skipped for ack in finished(scene.life.wake(), "wake").acks)
    assert all(ack.skipped for ack in finished(scene.life.resume(), "resume").acks)
    scene.asleep(2)
    assert all(ack.skipped for ack in finished(scene.life.sleep(1, abort=False), "sleep").acks)


def test_a_deeper_sleep_may_follow() -> None:
    life = Scene().asleep(1).life
    assert life.sleep(2, abort=False) == [Tell(A, Sleep(2)), Tell(B, Sleep(2))]


def test_a_sleep_that_fails_everywhere_leaves_the_stage_awake() -> None:
    life = Scene().life
    life.sleep(2, abort=False)
    life.on_rested(A, Rested(0, code=SLEEP_UNSUPPORTED, message="it cannot"))
    effects = life.on_rested(B, Rested(0, code=SLEEP_UNSUPPORTED, message="it cannot"))
    assert finished(effects, "sleep").failed
    assert effects[-1] == Fill()
    assert (life.state, life.failure) == (AWAKE, ("sleep", "it cannot"))


def test_a_sleep_that_fails_at_one_replica_can_be_tried_again_or_undone() -> None:
    for undo in (False, True):
        life = Scene().life
        life.sleep(2, abort=False)
        life.on_rested(A, Rested(2))
        assert finished(life.on_rested(B, Rested(0, code="stage_failed")), "sleep").failed
        assert (life.state, life.takes_work) == (FAILED, False)
        if undo:
            assert life.wake() == [Tell(A, Wake())]
            effects = life.on_rested(A, Rested(0))
            assert not finished(effects, "wake").failed
            assert life.state is AWAKE
        else:
            assert life.sleep(2, abort=False) == [Tell(B, Sleep(2))]
            assert not finished(life.on_rested(B, Rested(2)), "sleep").failed
            assert life.state is ASLEEP
        assert life.failure is None


def test_a_wake_that_fails_leaves_asleep_what_sleeps_and_refuses_who_waits() -> None:
    life = Scene().asleep().life
    life.wake()
    life.on_rested(A, Rested(2, code="out_of_memory"))
    effects = life.on_rested(B, Rested(2, code="out_of_memory"))
    assert effects[0] == EndJobs("stage_asleep", running=False, queued=True)
    assert finished(effects, "wake").failed
    assert life.state is ASLEEP
    assert life.wake() == [Tell(A, Wake()), Tell(B, Wake())]
    life.on_rested(A, Rested(0))
    life.on_rested(B, Rested(2, code="out_of_memory"))
    assert life.state is FAILED
    assert life.wake() == [Tell(B, Wake())]


def test_a_replica_that_dies_while_it_goes_to_sleep_starts_asleep_and_that_is_its_answer() -> None:
    life = Scene().life
    life.sleep(1, abort=False)
    life.on_rested(B, Rested(1))
    assert life.on_lost(A, again=False) == []
    assert life.starts_asleep(A)
    done = finished(life.on_ready(A, 2), "sleep")
    assert [ack.restarted for ack in done.acks] == [True, False]
    assert (life.state, life.level) == (ASLEEP, 1)


def test_a_replica_that_dies_while_it_wakes_starts_awake() -> None:
    life = Scene().asleep().life
    life.wake()
    life.on_rested(B, Rested(0))
    life.on_lost(A, again=False)
    assert not life.starts_asleep(A)
    effects = life.on_ready(A, 0)
    assert not finished(effects, "wake").failed
    assert life.state is AWAKE


def test_a_replica_that_cannot_start_awake_fails_the_wake_and_starts_asleep_from_then_on() -> None:
    life = Scene().asleep().life
    life.wake()
    life.on_rested(B, Rested(0))
    life.on_lost(A, again=False)
    done = finished(life.on_lost(A, again=True), "wake")
    assert [ack.code for ack in done.acks] == ["replica_lost", ""]
    assert life.state is FAILED
    assert life.starts_asleep(A)
    assert not life.starts_asleep(B)
    life.on_ready(A, 2)
    assert life.wake() == [Tell(A, Wake())]


def test_a_replica_that_dies_asleep_starts_asleep() -> None:
    life = Scene().asleep(1).life
    life.on_lost(A, again=False)
    assert life.starts_asleep(A)
    assert life.on_ready(A, 2) == []
    assert life.level_of(A) == 2


def test_a_replica_that_is_missing_is_waited_for() -> None:
    life = Scene().life
    life.on_lost(A, again=False)
    assert life.sleep(2, abort=False) == [Tell(B, Sleep(2))]
    life.on_rested(B, Rested(2))
    assert life.on_ready(A, 0) == [Tell(A, Sleep(2))], "it had begun to load before"
    finished(life.on_rested(A, Rested(2)), "sleep")


def test_a_replica_that_does_not_answer_is_killed_and_the_order_may_be_given_again() -> None:
    life = Scene().asleep().life
    life.wake()
    life.on_rested(B, Rested(0))
    effects = life.on_timeout()
    assert effects[0] == Kill(A)
    assert finished(effects, "wake").failed
    life.on_lost(A, again=False)
    assert life.starts_asleep(A)
    life.on_ready(A, 2)
    assert life.wake() == [Tell(A, Wake())]


def test_a_wake_gives_up_a_sleep_whose_work_has_not_ended() -> None:
    scene = Scene(running=True)
    scene.life.sleep(2, abort=False)
    sleep, wake, fill = scene.life.wake()
    assert isinstance(sleep, Finished)
    assert sleep.failed
    assert isinstance(wake, Finished)
    assert not wake.failed
    assert (fill, scene.life.state) == (Fill(), AWAKE)


@pytest.mark.parametrize("order", ["sleep", "wake"])
def test_the_opposite_order_is_refused_while_replicas_are_on_their_way(order: str) -> None:
    scene = Scene()
    if order == "wake":
        scene.life.sleep(2, abort=False)
        effects = scene.life.wake()
    else:
        scene.asleep().life.wake()
        effects = scene.life.sleep(2, abort=True)
    assert {ack.code for ack in finished(effects, order).acks} == {"stage_in_transition"}


def test_a_pause_is_complete_when_work_that_runs_has_ended() -> None:
    scene = Scene(running=True, waiting=True)
    assert scene.life.pause(abort=False, refuse=False) == []
    assert (scene.life.shown, scene.life.takes_work) == ("pausing", False)
    scene.running = False
    assert not finished(scene.life.on_idle(), "pause").failed
    assert scene.life.shown == "paused"
    effects = scene.life.resume()
    assert not finished(effects, "resume").failed
    assert effects[-1] == Fill()


def test_a_pause_may_abort_what_runs_and_refuse_what_waits() -> None:
    scene = Scene(running=True, waiting=True)
    assert scene.life.pause(abort=True, refuse=True) == [
        EndJobs("stage_paused", running=True, queued=True)
    ]
    assert scene.life.refuses_queue
    idle = Scene()
    effects = idle.life.pause(abort=False, refuse=True)
    assert effects[0] == EndJobs("stage_paused", running=False, queued=True)
    finished(effects, "pause")


def test_a_resume_gives_up_a_pause_that_is_not_complete() -> None:
    scene = Scene(running=True)
    scene.life.pause(abort=False, refuse=False)
    pause, resume, fill = scene.life.resume()
    assert isinstance(pause, Finished)
    assert pause.failed
    assert isinstance(resume, Finished)
    assert not resume.failed
    assert fill == Fill()


def test_a_pause_outlasts_sleep_and_what_waits_in_it_does_not_keep_a_stage_awake() -> None:
    scene = Scene(waiting=True)
    scene.life.pause(abort=False, refuse=False)
    effects = scene.life.sleep(2, abort=False)
    assert effects[0] == EndJobs("stage_asleep", running=False, queued=True)
    scene.waiting = False
    scene.life.on_rested(A, Rested(2))
    scene.life.on_rested(B, Rested(2))
    scene.life.wake()
    scene.life.on_rested(A, Rested(0))
    effects = scene.life.on_rested(B, Rested(0))
    assert Fill() not in effects
    assert scene.life.shown == "paused"


HELD = [Tell(A, Pause(on=True)), Tell(B, Pause(on=True))]
RELEASED = [Tell(A, Pause(on=False)), Tell(B, Pause(on=False))]


def kept(scene: Scene) -> Scene:
    assert scene.life.pause(abort=False, refuse=False, keep=True) == HELD
    assert scene.life.on_held(A) == []
    assert not finished(scene.life.on_held(B), "pause").failed
    return scene


def test_a_pause_that_keeps_its_work_is_complete_when_no_step_is_in_progress() -> None:
    life = kept(Scene(running=True)).life
    assert (life.shown, life.takes_work, life.held.wanted) == ("paused", False, True)
    *told, done, fill = life.resume()
    assert told == RELEASED
    assert not finished([done], "resume").failed
    assert (fill, life.takes_work, life.held.wanted) == (Fill(), True, False)


def test_a_pause_may_keep_what_runs_and_refuse_what_waits() -> None:
    effects = Scene(running=True, waiting=True).life.pause(abort=False, refuse=True, keep=True)
    assert effects == [*HELD, EndJobs("stage_paused", running=False, queued=True)]


def test_a_second_pause_may_let_kept_work_end_or_abort_it() -> None:
    life = kept(Scene(running=True)).life
    assert life.pause(abort=False, refuse=False) == RELEASED
    assert life.pausing
    life = kept(Scene(running=True)).life
    aborted = EndJobs("stage_paused", running=True, queued=False)
    assert life.pause(abort=True, refuse=False) == [*RELEASED, aborted]


def test_work_that_is_kept_is_never_overdue_and_holds_a_sleep_off() -> None:
    scene = kept(Scene(running=True))
    assert scene.life.on_overdue() == []
    refused = finished(scene.life.sleep(2, abort=False), "sleep")
    assert refused.failed
    assert refused.acks[0].reason.startswith("the stage keeps its work")
    assert scene.life.state is AWAKE
    assert scene.life.sleep(2, abort=True) == [EndJobs("stage_asleep", running=True, queued=True)]
    scene.running = False
    assert scene.life.on_idle() == [Tell(A, Sleep(2)), Tell(B, Sleep(2))]


def test_a_replica_that_does_not_hold_its_work_in_time_is_killed_and_named() -> None:
    life = Scene(running=True).life
    life.pause(abort=False, refuse=False, keep=True)
    life.on_held(A)
    assert life.answers_due
    effects = life.on_timeout()
    assert effects[0] == Kill(B)
    assert [ack.code for ack in finished(effects, "pause").acks] == ["", "stage_timeout"]
    assert not life.answers_due


def test_a_replica_that_dies_holds_nothing_up() -> None:
    life = Scene(running=True).life
    life.pause(abort=False, refuse=False, keep=True)
    life.on_held(A)
    life.on_lost(B, again=False)
    assert not finished(life.on_idle(), "pause").failed
    life.on_ready(B, 0)
    assert life.resume()[0] == Tell(A, Pause(on=False))
