"""Whether a stage works, rests, or is on its way between: pure, orders and news in, effects out.

Each transition may be ordered again while it goes on, which changes nothing, and after it failed,
which goes on with what is left. This module must not know workers, jobs or clocks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Literal, TypeAlias

from duologue.engines.executors.base import REPLICA_LOST
from duologue.engines.lifecycle_port import DROPPED, IN_TRANSITION, STAGE_ASLEEP, STAGE_PAUSED
from duologue.engines.messages import Pause, Rested, Sleep, Wake
from duologue.engines.pools.held_work import HeldWork

Transition: TypeAlias = Literal["sleep", "wake", "pause", "resume"]


_LATE = ("stage_timeout", "it did not answer in time, and is restarted")


class LifeState(Enum):
    """What a stage is doing."""

    AWAKE = "awake"
    GOING_TO_SLEEP = "going_to_sleep"
    ASLEEP = "asleep"
    WAKING = "waking"
    FAILED = "failed"
    """A transition failed half-way: some replicas have done it, and some have not."""


@dataclass(frozen=True, slots=True)
class Ack:
    """What became of one replica in a transition.

    Args:
        rested: Its answer; ``None``: there was nothing to do.
        error: Code and reason, where it has none to give itself.
        restarted: A new process is as the old one was to become.
        skipped: It was so already.
    """

    replica: str
    level: int
    rested: Rested | None = None
    error: tuple[str, str] = ("", "")
    restarted: bool = False
    skipped: bool = False

    @property
    def code(self) -> str:
        """Why it failed; empty: it did not."""
        return self.error[0] or (self.rested.code if self.rested is not None else "")

    @property
    def reason(self) -> str:
        """And in words."""
        return self.error[1] or (self.rested.message if self.rested is not None else "")


@dataclass(frozen=True, slots=True)
class Tell:
    """Send an order to a replica; ``Rested`` answers it, or ``Paused``."""

    replica: str
    message: Sleep | Wake | Pause


@dataclass(frozen=True, slots=True)
class Kill:
    """A replica did not answer in time."""

    replica: str


@dataclass(frozen=True, slots=True)
class EndJobs:
    """Abort work, for a reason with this code.

    Args:
        running: That has a slot; ``queued``: that waits for one.
    """

    code: str
    running: bool
    queued: bool


@dataclass(frozen=True, slots=True)
class Fill:
    """Work may begin: place what waits."""


@dataclass(frozen=True, slots=True)
class Finished:
    """A transition is over.

    Args:
        acks: One of each replica.
    """

    transition: Transition
    acks: Sequence[Ack]

    @property
    def failed(self) -> bool:
        """Some replica did not do it."""
        return any(ack.code for ack in self.acks)


Effect: TypeAlias = Tell | Kill | EndJobs | Fill | Finished


@dataclass(slots=True)
class _Replica:
    """What is known of a replica.

    Args:
        level: At which it sleeps, or will when it is there; 0: awake.
        present: It can be told something.
        awaited: The transition waits for it.
    """

    level: int = 0
    present: bool = False
    awaited: bool = False
    ack: Ack | None = None


class StageLife:
    """One stage's.

    Args:
        replicas: Their names.
        busy: Tells whether work runs; ``waiting``: whether work waits for a slot.
    """

    def __init__(
        self, replicas: Sequence[str], busy: Callable[[], bool], waiting: Callable[[], bool]
    ) -> None:
        self.state = LifeState.AWAKE
        self.paused = False
        self.refuses_queue = False
        """While paused: what comes is refused."""
        self.draining = False
        """Work is to end before replicas are told to sleep."""
        self.pausing = False
        """Work is to end before the pause is complete."""
        self.failure: tuple[Transition, str] | None = None
        """The latest transition, where it failed, and why."""
        self.held = HeldWork()
        self._wanted = 0
        self._replicas = {name: _Replica() for name in replicas}
        self._busy = busy
        self._waiting = waiting

    @property
    def takes_work(self) -> bool:
        """Jobs may get slots."""
        return self.state is LifeState.AWAKE and not self.paused

    @property
    def shown(self) -> str:
        """The state in a word, the pause included."""
        if self.state is LifeState.AWAKE and self.paused:
            return "pausing" if self.pausing else "paused"
        return self.state.value

    @property
    def level(self) -> int:
        """At which all replicas sleep; 0: some are awake."""
        return min(each.level for each in self._replicas.values())

    @property
    def is_told(self) -> bool:
        """Replicas have been told, and the answers of some are due."""
        return any(each.awaited for each in self._replicas.values())

    @property
    def answers_due(self) -> bool:
        """Replicas have been told something, and the answers of some are due."""
        return self.is_told or bool(self.held.late)

    def level_of(self, replica: str) -> int:
        """At which one sleeps."""
        return self._replicas[replica].level

    def starts_asleep(self, replica: str) -> bool:
        """Tell whether a process that is started now need not load anything."""
        match self.state:
            case LifeState.ASLEEP | LifeState.GOING_TO_SLEEP:
                return True
            case LifeState.WAKING:
                return not self._replicas[replica].awaited and self._replicas[replica].level > 0
            case LifeState.FAILED:
                return self._replicas[replica].level > 0
            case LifeState.AWAKE:
                return False

    # Orders

    def sleep(self, level: int, *, abort: bool) -> list[Effect]:
        """Let every replica sleep, at this level at least.

        AWAKE, FAILED -> GOING_TO_SLEEP; so does ASLEEP where a deeper level is asked for.
        GOING_TO_SLEEP: the same transition, whose work is now aborted where that is wanted.
        WAKING: refused by ``Finished``, and nothing changes; likewise where work is kept, which
        does not end by itself. After ``EndJobs`` whoever performs it must call ``on_idle``: there
        may have been no work.
        """
        ending: list[Effect] = [EndJobs(STAGE_ASLEEP, running=True, queued=True)] if abort else []
        match self.state:
            case LifeState.WAKING:
                return [self._refused("sleep")]
            case LifeState.GOING_TO_SLEEP:
                if not self.draining:
                    return []
                self._wanted = max(self._wanted, level)
                return ending
            case LifeState.ASLEEP if self.level >= level:
                return [self._skipped("sleep")]
            case _ if self.held.wanted and self._busy() and not abort:
                why = "keeps its work: resume it first, or let it sleep with mode abort"
                return [self._refused("sleep", why)]
        self.state = LifeState.GOING_TO_SLEEP
        self._wanted = level
        self.draining = True
        return ending or self.on_idle()

    def wake(self) -> list[Effect]:
        """Let every replica wake.

        ASLEEP, FAILED -> WAKING; so does GOING_TO_SLEEP while work still ends. Later in it, the
        order is refused by ``Finished``, and nothing changes.
        """
        match self.state:
            case LifeState.AWAKE if not any(each.level for each in self._replicas.values()):
                return [self._skipped("wake")]
            case LifeState.WAKING:
                return []
            case LifeState.GOING_TO_SLEEP if not self.draining:
                return [self._refused("wake")]
        effects: list[Effect] = []
        if self.draining:
            self.draining = False
            error = (IN_TRANSITION, "the stage was told to wake before it slept")
            effects.append(Finished("sleep", [self._ack(name, error) for name in self._replicas]))
        self.state = LifeState.WAKING
        self._wanted = 0
        return [*effects, *self._tell_all()]

    def pause(self, *, abort: bool, refuse: bool, keep: bool = False) -> list[Effect]:
        """Begin no work, whatever the state; it goes on when work that runs has ended.

        Args:
            keep: Work that runs does not end: it goes on when the stage resumes.
        """
        self.paused = True
        self.refuses_queue = refuse
        self.pausing = True
        effects = self._kept() if keep else self._let_go()
        if abort or refuse:
            effects.append(EndJobs(STAGE_PAUSED, running=abort, queued=refuse))
        return effects if abort else [*effects, *self.on_idle()]

    def resume(self) -> list[Effect]:
        """Begin work again. A pause that is not complete is given up."""
        if not self.paused:
            return [self._skipped("resume")]
        effects: list[Effect] = []
        if self.pausing:
            error = (IN_TRANSITION, "the stage was told to resume before it paused")
            acks = [self._ack(name, error) for name in self._replicas]
            effects.append(Finished("pause", acks))
        self.paused = self.pausing = self.refuses_queue = False
        effects += self._let_go()
        done = Finished("resume", [self._ack(name) for name in self._replicas])
        return [*effects, done, *self._filled()]

    # News

    def on_idle(self) -> list[Effect]:
        """Look whether work has ended that something waits for."""
        effects: list[Effect] = []
        stands = not self.held.late if self.held.wanted else not self._busy()
        if self.pausing and stands:
            self.pausing = False
            effects.append(Finished("pause", [self._ack(name) for name in self._replicas]))
        # In a pause nothing that waits begins, so nobody waits for it.
        ended = not self._busy() and (self.paused or not self._waiting())
        if self.draining and ended:
            self.draining = False
            effects += self._tell_all()
            if self._waiting():
                effects.insert(0, EndJobs(STAGE_ASLEEP, running=False, queued=True))
        return effects

    def on_overdue(self) -> list[Effect]:
        """Work has taken too long to end: abort it."""
        effects: list[Effect] = []
        if self.draining:
            effects.append(EndJobs(STAGE_ASLEEP, running=True, queued=True))
        elif self.pausing and not self.held.wanted:
            effects.append(EndJobs(STAGE_PAUSED, running=True, queued=False))
        return effects

    def on_rested(self, replica: str, rested: Rested) -> list[Effect]:
        """A replica has answered."""
        each = self._replicas[replica]
        each.level = rested.level
        if not each.awaited:
            return self._filled()
        return self._acknowledged(replica, Ack(replica, rested.level, rested))

    def on_held(self, replica: str) -> list[Effect]:
        """A replica makes no step any more."""
        self.held.on_held(replica)
        return self.on_idle()

    def on_ready(self, replica: str, level: int) -> list[Effect]:
        """A replica has a new process, that sleeps at this level or is awake."""
        each = self._replicas[replica]
        each.present, each.level = True, level
        if self.draining:
            return []
        if not each.awaited:
            # What was decided while it started; nobody waits for its answer.
            return self._reconciled(replica)
        if self._has_done(each):
            return self._acknowledged(replica, Ack(replica, level, restarted=True))
        return [self._told(replica)]

    def on_lost(self, replica: str, *, again: bool) -> list[Effect]:
        """A replica has lost its process, and gets another; ``on_idle`` is to be called next.

        Args:
            again: The one before was lost before it was ready, too.
        """
        each = self._replicas[replica]
        each.present = False
        self.held.on_lost(replica)
        if each.level:
            each.level = DROPPED
        if not each.awaited or not again:
            return []
        error = (REPLICA_LOST, "its process died, and the next one, too, before it was ready")
        each.level = DROPPED if self.state is LifeState.WAKING else 0
        return self._acknowledged(replica, Ack(replica, each.level, error=error))

    def on_timeout(self) -> list[Effect]:
        """Replicas that were told have not answered in time: be rid of their processes."""
        late = [name for name, each in self._replicas.items() if each.awaited]
        effects: list[Effect] = []
        for name in late:
            effects.append(Kill(name))
            each = self._replicas[name]
            each.level = DROPPED if self.state is LifeState.WAKING else 0
            effects += self._acknowledged(name, Ack(name, each.level, error=_LATE))
        return [*effects, *self._hold_overdue()]

    # Private

    def _kept(self) -> list[Effect]:
        awake = (name for name, each in self._replicas.items() if each.present and not each.level)
        return [Tell(name, Pause(on=True)) for name in self.held.hold(awake)]

    def _let_go(self) -> list[Effect]:
        return [Tell(name, Pause(on=False)) for name in self.held.release()]

    def _hold_overdue(self) -> list[Effect]:
        """Be rid of those that should have held their work by now; the pause has failed there."""
        late = self.held.late
        for name in late:
            self.held.on_lost(name)
        acks = [self._ack(each, _LATE if each in late else ("", "")) for each in self._replicas]
        over = [Finished("pause", acks)] if late and self.pausing else []
        self.pausing = self.pausing and not over
        return [*(Kill(name) for name in late), *over]

    def _tell_all(self) -> list[Effect]:
        effects: list[Effect] = []
        for name, each in self._replicas.items():
            each.ack = None
            if each.present and self._has_done(each):
                each.ack = Ack(name, each.level, skipped=True)
                continue
            each.awaited = True
            if each.present:
                effects.append(self._told(name))
        return effects if effects or self.is_told else self._finish()

    def _told(self, replica: str) -> Tell:
        return Tell(replica, Sleep(self._wanted) if self._wanted else Wake())

    def _reconciled(self, replica: str) -> list[Effect]:
        level = self._replicas[replica].level
        if self.state is LifeState.ASLEEP and not level:
            return [Tell(replica, Sleep(self._wanted or DROPPED))]
        if self.state is LifeState.AWAKE and level:
            return [Tell(replica, Wake())]
        return []

    def _has_done(self, each: _Replica) -> bool:
        return each.level >= self._wanted if self._wanted else not each.level

    def _acknowledged(self, replica: str, ack: Ack) -> list[Effect]:
        each = self._replicas[replica]
        each.awaited = False
        each.ack = ack
        return [] if self.is_told else self._finish()

    def _finish(self) -> list[Effect]:
        transition: Transition = "sleep" if self._wanted else "wake"
        acks = [each.ack for each in self._replicas.values() if each.ack is not None]
        done = Finished(transition, acks)
        self.failure = None
        if done.failed:
            self.failure = transition, next(ack.reason for ack in acks if ack.code)
        asleep = [each.level > 0 for each in self._replicas.values()]
        if all(asleep):
            self.state = LifeState.ASLEEP
        elif not any(asleep):
            self.state = LifeState.AWAKE
        else:
            self.state = LifeState.FAILED
        if self.state is LifeState.AWAKE:
            return [done, *self._filled()]
        if transition == "wake":
            # It was to work again, and does not: who waits would wait for ever.
            return [EndJobs(STAGE_ASLEEP, running=False, queued=True), done]
        return [done]

    def _filled(self) -> list[Effect]:
        return [Fill()] if self.takes_work else []

    def _ack(self, replica: str, error: tuple[str, str] = ("", "")) -> Ack:
        return Ack(replica, self._replicas[replica].level, error=error)

    def _skipped(self, transition: Transition) -> Finished:
        acks = [Ack(name, each.level, skipped=True) for name, each in self._replicas.items()]
        return Finished(transition, acks)

    def _refused(self, transition: Transition, why: str = "") -> Finished:
        error = (IN_TRANSITION, f"the stage {why or f'is {self.state.value}'}")
        return Finished(transition, [self._ack(name, error) for name in self._replicas])
