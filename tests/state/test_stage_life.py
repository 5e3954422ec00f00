"""Whatever happens, a stage ends as it was ordered last, and everybody is told."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from duologue.engines.messages import Pause, Rested, Sleep, Wake
from duologue.engines.pools.stage_life import (
    Effect,
    EndJobs,
    Fill,
    Finished,
    Kill,
    LifeState,
    StageLife,
    Tell,
)

REPLICAS = ("s/0", "s/1", "s/2")


class Worker:
    """A process that does what it is told, when the test lets it."""

    def __init__(self, level: int) -> None:
        self.level = level
        self.told: list[Sleep | Wake | Pause] = []
        self.holds = False
        self.may_work = True


class StageLifeModel(RuleBasedStateMachine):
    """Processes, work and callers around one stage."""

    def __init__(self) -> None:
        super().__init__()
        self.running = self.waiting = 0
        self.life = StageLife(REPLICAS, lambda: self.running > 0, lambda: self.waiting > 0)
        self.workers: dict[str, Worker | None] = dict.fromkeys(REPLICAS)
        self.failing: set[str] = set()
        self.asked: set[str] = set()
        """Transitions that somebody waits for."""

    def perform(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case Tell(replica=name, message=message):
                    worker = self.workers[name]
                    assert worker is not None, "only a process that is there is told"
                    worker.told.append(message)
                case Kill(replica=name):
                    self.lose(name)
                case EndJobs(running=running, queued=queued):
                    self.running = 0 if running else self.running
                    self.waiting = 0 if queued else self.waiting
                    self.perform(self.life.on_idle())
                case Fill():
                    assert self.life.takes_work
                    for each in self.workers.values():
                        if each is not None:
                            each.may_work = True
                    self.running, self.waiting = self.running + self.waiting, 0
                case Finished(transition=transition, acks=acks):
                    assert [ack.replica for ack in acks] == list(REPLICAS)
                    self.asked.discard(transition)

    def lose(self, name: str) -> None:
        if self.workers[name] is not None:
            self.workers[name] = None
            self.perform(self.life.on_lost(name, again=name in self.failing))
            self.perform(self.life.on_idle())

    @initialize()
    def all_start(self) -> None:
        for name in REPLICAS:
            self.starts(name)

    @rule(level=st.integers(1, 2), abort=st.booleans())
    def order_sleep(self, level: int, abort: bool) -> None:
        self.asked.add("sleep")
        self.perform(self.life.sleep(level, abort=abort))

    @rule()
    def order_wake(self) -> None:
        self.asked.add("wake")
        self.perform(self.life.wake())

    @rule(mode=st.sampled_from(["wait", "abort", "keep"]), refuse=st.booleans())
    def order_pause(self, mode: str, refuse: bool) -> None:
        self.asked.add("pause")
        abort, keep = mode == "abort", mode == "keep"
        self.perform(self.life.pause(abort=abort, refuse=refuse, keep=keep))

    @rule()
    def order_resume(self) -> None:
        self.asked.add("resume")
        self.perform(self.life.resume())

    @rule()
    def work_comes(self) -> None:
        if self.life.takes_work:
            self.running += 1
        elif self.life.state is LifeState.AWAKE and not self.life.refuses_queue:
            self.waiting += 1

    @precondition(lambda self: self.running)
    @rule()
    def work_ends(self) -> None:
        self.running -= 1
        self.perform(self.life.on_idle())

    @rule(name=st.sampled_from(REPLICAS))
    def dies(self, name: str) -> None:
        self.lose(name)

    @rule(name=st.sampled_from(REPLICAS))
    def starts(self, name: str) -> None:
        if self.workers[name] is None:
            worker = Worker(2 if self.life.starts_asleep(name) else 0)
            worker.may_work = self.life.takes_work
            self.workers[name] = worker
            self.failing.discard(name)
            self.perform(self.life.on_ready(name, worker.level))

    @rule(name=st.sampled_from(REPLICAS))
    def cannot_start(self, name: str) -> None:
        if self.workers[name] is None:
            self.failing.add(name)
            self.perform(self.life.on_lost(name, again=True))

    @rule(name=st.sampled_from(REPLICAS), works=st.booleans())
    def answers(self, name: str, works: bool) -> None:
        worker = self.workers[name]
        if worker is None or not worker.told:
            return
        message = worker.told.pop(0)
        if isinstance(message, Pause):
            worker.holds = message.on
            if message.on:
                self.perform(self.life.on_held(name))
            return
        if works:
            worker.level = max(worker.level, message.level) if isinstance(message, Sleep) else 0
        code = "" if works else "stage_failed"
        self.perform(self.life.on_rested(name, Rested(worker.level, code=code)))

    @rule()
    def time_is_over(self) -> None:
        self.perform(self.life.on_timeout())

    @rule()
    def work_is_overdue(self) -> None:
        self.perform(self.life.on_overdue())

    @invariant()
    def levels_are_known(self) -> None:
        for name, worker in self.workers.items():
            if worker is not None:
                assert self.life.level_of(name) == worker.level

    @invariant()
    def nobody_waits_for_a_transition_that_does_not_go_on(self) -> None:
        going_on = {
            "sleep": self.life.state is LifeState.GOING_TO_SLEEP,
            "wake": self.life.state is LifeState.WAKING,
            "pause": self.life.pausing,
        }
        assert self.asked <= {name for name, goes_on in going_on.items() if goes_on}

    @invariant()
    def replicas_are_told_only_when_no_work_runs(self) -> None:
        told = [
            [message for message in each.told if not isinstance(message, Pause)]
            for each in self.workers.values()
            if each is not None
        ]
        if self.life.state is LifeState.GOING_TO_SLEEP and any(told):
            assert not self.running

    @invariant()
    def work_goes_on_unless_it_is_kept(self) -> None:
        for worker in self.workers.values():
            if worker is not None and not worker.told and not self.life.held.wanted:
                assert not worker.holds

    @invariant()
    def no_step_is_in_progress_once_a_pause_that_keeps_work_is_complete(self) -> None:
        if self.life.held.wanted and not self.life.pausing and self.running:
            assert all(
                each is None or each.holds or each.level or not each.may_work
                for each in self.workers.values()
            )

    def teardown(self) -> None:
        """Everything settles: then the stage is as it was ordered last."""
        for wanted in ("sleep", "wake"):
            self.running = self.waiting = 0
            for _ in range(4):
                self.perform(self.life.on_idle())
                for name in REPLICAS:
                    self.starts(name)
                    while (worker := self.workers[name]) is not None and worker.told:
                        self.answers(name, works=True)
            self.order_sleep(2, abort=True) if wanted == "sleep" else self.order_wake()
            for name in REPLICAS:
                while (worker := self.workers[name]) is not None and worker.told:
                    self.answers(name, works=True)
            asleep = wanted == "sleep"
            assert self.life.state is (LifeState.ASLEEP if asleep else LifeState.AWAKE)
            assert self.asked <= set()


TestStageLife = StageLifeModel.TestCase
