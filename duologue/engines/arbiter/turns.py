"""When a worker may step on the device that it shares, as its loop asks it.

This module must not know executors or what a runner computes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol, TypeAlias

import structlog

from duologue.core.clock import Clock, SystemClock
from duologue.core.errors import ConfigError, EngineError
from duologue.engines.arbiter.board import Board
from duologue.engines.arbiter.device_arbiter import Beat, Grant
from duologue.engines.arbiter.slice_costs import SliceCosts
from duologue.engines.messages import WorkerSpec
from duologue.engines.ports import WorkClass
from duologue.engines.runners.contract import (
    HoldsMemory,
    Job,
    KeepsBeat,
    LoadsInParts,
    Runner,
    Sliced,
)

log = structlog.get_logger(__name__)

LONGEST_WAIT_S = 0.05
"""A worker asks again at least so often, whatever it was told."""

MEMORY_RETRY_S = 0.02
"""When to look again whether there is memory for a job."""

PATIENCE_S = 1.0
"""Work that has waited so long for want of a slice that is short enough is measured anew."""

LIMIT_EXCEEDED = "limit_exceeded"
SLICE_TOO_LONG = "slice_too_long"

LOADED_PART_S = 0.010
"""What a part of loading and warming up is taken for: none of it has been measured."""

_WARM = "warm-up"
_LOADING = "loading"

Refused: TypeAlias = tuple[Job, EngineError]


class Turns(Protocol):
    """A worker's part in its device.

    Concurrency:
        Belongs to the worker's thread.
    """

    def claim(self, now: float) -> float | None:
        """Take what the model will hold, before anything of it is on the device.

        Returns:
            When to ask again, or ``None``: it has been taken, or is not known yet.

        Raises:
            ConfigError: There will never be room.
        """
        ...

    def warm(self) -> None:
        """The runner is warm.

        Raises:
            ConfigError: It cannot share the device.
        """
        ...

    def admitted(self, ready: Sequence[Job], now: float) -> tuple[list[Job], list[Refused]]:
        """Return the jobs there is memory for, and those for which there will never be any."""
        ...

    def wait_until(self, jobs: Sequence[Job], now: float) -> float | None:
        """Ask to step some jobs; returns when to ask again, or ``None`` for now."""
        ...

    def stepped(self, jobs: Sequence[Job], now: float) -> Sequence[Refused]:
        """A step has ended; returns the jobs that should never have begun."""
        ...

    def idle(self) -> None:
        """There is nothing to step."""
        ...

    def over(self, job: Job) -> None:
        """A job has ended."""
        ...

    def leave(self) -> None:
        """The runner is dropped: it holds nothing any more, and nobody may hold it."""
        ...


class Unshared:
    """The device is the worker's own, or nobody minds."""

    def claim(self, now: float) -> float | None:
        """Nobody minds."""
        return None

    def warm(self) -> None:
        """Nothing is to be said."""

    def admitted(self, ready: Sequence[Job], now: float) -> tuple[list[Job], list[Refused]]:
        """All are."""
        return list(ready), []

    def wait_until(self, jobs: Sequence[Job], now: float) -> float | None:
        """Now."""
        return None

    def stepped(self, jobs: Sequence[Job], now: float) -> Sequence[Refused]:
        """All may go on."""
        return ()

    def idle(self) -> None:
        """Nobody minds."""

    def over(self, job: Job) -> None:
        """It held nothing."""

    def leave(self) -> None:
        """Nobody minds."""


class RealtimeTurns(Unshared):
    """A realtime worker: it waits for nobody, and says when it steps.

    Args:
        number: Of its seat.
        period_s: What comes in must be done so long after.
    """

    def __init__(self, board: Board, number: int, runner: Runner, period_s: float) -> None:
        self._board = board
        self._number = number
        self._runner = runner
        self._period_s = period_s
        self._costs = SliceCosts(period_s)
        self._began_at = 0.0
        board.sit(number, is_batch=False)
        self._keeps_beat = isinstance(runner, KeepsBeat)
        if isinstance(runner, KeepsBeat):
            runner.on_beat = lambda beat: board.publish(number, beat)

    def warm(self) -> None:
        """Say what it holds for good."""
        _declare(self._board, self._number, self._runner)

    def wait_until(self, jobs: Sequence[Job], now: float) -> float | None:
        """Now."""
        if not self._keeps_beat:
            self._began_at = now
            step_s = self._costs.of(None)
            busy_until = now + (step_s or self._period_s)
            self._board.publish(self._number, Beat(step_s=step_s, busy_until=busy_until))
        return None

    def stepped(self, jobs: Sequence[Job], now: float) -> Sequence[Refused]:
        """What follows may come at any moment, and must be done a period after it came."""
        if not self._keeps_beat:
            self._costs.add(None, now - self._began_at)
            self._board.publish(self._number, Beat(now, now + self._period_s, self._costs.of(None)))
        return ()

    def leave(self) -> None:
        """It steps no more."""
        self._board.leave(self._number)
        self._board.close()


class BatchTurns:
    """A batch worker: it asks before each slice, and for the memory of each job.

    Args:
        number: Of its seat.
        device: For messages.
        pause: Waits for so many seconds.
    """

    def __init__(
        self,
        board: Board,
        number: int,
        runner: Runner,
        device: str,
        clock: Clock | None = None,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._board = board
        self._number = number
        self._runner = runner
        self._device = device
        self._clock = clock or SystemClock()
        self._pause = pause
        self._longest_s = board.look().longest_slice_s
        self._costs = SliceCosts(self._longest_s)
        self._held: dict[str, int] = {}
        self._began_at = 0.0
        self._shape_asked: Hashable = None
        self._waits_since: float | None = None
        board.sit(number, is_batch=True)
        if isinstance(runner, Sliced):
            runner.slice_s = self._longest_s  # warm-up is to be measured in such slices
        if isinstance(runner, LoadsInParts):
            runner.turn = self.turn
            self._costs.add(_LOADING, min(LOADED_PART_S, self._longest_s))

    def claim(self, now: float) -> float | None:
        """Take its memory once there is room beside the jobs of others."""
        runner = self._runner
        if not isinstance(runner, LoadsInParts) or not isinstance(runner, HoldsMemory):
            return None
        size_bytes = runner.resident_bytes
        with self._board.deciding() as arbiter:
            room = arbiter.room_bytes()
            if size_bytes > room:
                taken = False
            else:
                taken = arbiter.take_bytes(self._number, size_bytes, now, for_good=True)
        if size_bytes > room:
            raise _no_room(size_bytes, room, self._board)
        return None if taken else now + MEMORY_RETRY_S

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait until a part of loading may begin; it has ended behind this."""
        while (again_at := self._ask(_LOADING, now := self._clock.now())) is not None:
            self._pause(again_at - now)
        try:
            yield
        finally:
            with self._board.deciding() as arbiter:
                arbiter.ended(self._number, self._clock.now())

    def warm(self) -> None:
        """Say what it holds for good, and check that its slices can be short enough."""
        _declare(self._board, self._number, self._runner)
        longest_s = self._longest_s
        if not isinstance(self._runner, Sliced):
            return
        part_s = self._runner.longest_part_s
        if part_s > longest_s:
            raise ConfigError(
                f"the shortest slice of this model takes {1000 * part_s:.1f} ms. It shares "
                f"{self._device} with calls, which step every {2000 * longest_s:g} ms: a slice may "
                f"take half of that, {1000 * longest_s:g} ms. Give it a device of its own"
            )
        self._costs.forget(_LOADING)
        if part_s:
            self._costs.add(_WARM, part_s)

    def admitted(self, ready: Sequence[Job], now: float) -> tuple[list[Job], list[Refused]]:
        """Return the jobs there is memory for, the oldest first."""
        runner = self._runner
        if not self._board.budget_bytes or not isinstance(runner, HoldsMemory):
            return list(ready), []
        refused: list[Refused] = []
        jobs: list[Job] = []
        others_first = False
        for job in ready:
            if job.id in self._held:
                jobs.append(job)
            elif not others_first:
                try:
                    others_first = not self._takes_bytes(job, runner.job_bytes(job), now)
                except EngineError as exc:
                    refused.append((job, exc))
                else:
                    jobs += () if others_first else (job,)
        return jobs, refused

    def wait_until(self, jobs: Sequence[Job], now: float) -> float | None:
        """Ask for a slice."""
        return self._ask(self._shape(jobs), now)

    def _ask(self, shape: Hashable, now: float) -> float | None:
        cost_s = self._costs.of(shape)
        with self._board.deciding() as arbiter:
            answer = arbiter.ask(self._number, cost_s, now)
        if isinstance(answer, Grant):
            if isinstance(self._runner, Sliced):
                self._runner.slice_s = max(0.0, answer.slice_s - cost_s)
            self._began_at, self._waits_since, self._shape_asked = now, None, shape
            return None
        if self._waits_since is None:
            self._waits_since = now
        elif now - self._waits_since > PATIENCE_S:
            self._waits_since = now
            self._costs.forget_longest(shape)
            log.info("batch_work_waits", slice_ms=round(1000 * cost_s, 1), device=self._device)
        return min(answer.until, now + LONGEST_WAIT_S)

    def stepped(self, jobs: Sequence[Job], now: float) -> Sequence[Refused]:
        """Measure what ran; jobs whose slices are too long for this device are not gone on with."""
        with self._board.deciding() as arbiter:
            arbiter.ended(self._number, now)
        following = self._shape(jobs)
        shape = following if self._shape_asked is None else self._shape_asked
        runner = self._runner
        part_s = runner.longest_part_s if isinstance(runner, Sliced) else now - self._began_at
        self._costs.add(shape, part_s)
        if not self._costs.is_too_long(shape):
            return ()
        text = (
            f"its shortest slices take {1000 * part_s:.0f} ms, the limit on "
            f"{self._device}, which calls share, is {1000 * self._longest_s:g} ms"
        )
        return [
            (job, EngineError(text, code=SLICE_TOO_LONG))
            for job in jobs
            if self._shape([job]) == following
        ]

    def idle(self) -> None:
        """Others need not wait for it."""
        self._waits_since = None
        with self._board.deciding() as arbiter:
            arbiter.withdraw(self._number)

    def over(self, job: Job) -> None:
        """Give its memory back."""
        size_bytes = self._held.pop(job.id, 0)
        if size_bytes:
            with self._board.deciding() as arbiter:
                arbiter.give_bytes(self._number, size_bytes)

    def leave(self) -> None:
        """It asks no more."""
        self._board.leave(self._number)
        self._board.close()

    def _takes_bytes(self, job: Job, size_bytes: int, now: float) -> bool:
        with self._board.deciding() as arbiter:
            room = arbiter.room_bytes()
            if size_bytes <= room and not arbiter.take_bytes(self._number, size_bytes, now):
                return False
        if size_bytes > room:
            raise EngineError(
                f"it would take {size_bytes} bytes of {self._device}, the limit is {room:.0f}",
                code=LIMIT_EXCEEDED,
            )
        self._held[job.id] = size_bytes
        return True

    def _shape(self, jobs: Sequence[Job]) -> Hashable:
        return self._runner.slice_shape(jobs) if isinstance(self._runner, Sliced) else None


def make_turns(spec: WorkerSpec, runner: Runner) -> Turns:
    """Seat a worker at the board of its device, where it has one."""
    share = spec.share
    if share is None:
        return Unshared()
    board = Board.opened_again(share.board)
    if spec.work_class is WorkClass.BATCH:
        return BatchTurns(board, share.seat, runner, share.device)
    if spec.work_class is WorkClass.REALTIME:
        return RealtimeTurns(board, share.seat, runner, share.period_s)
    return Unshared()


def _declare(board: Board, number: int, runner: Runner) -> None:
    if not board.budget_bytes or not isinstance(runner, HoldsMemory):
        return
    size_bytes = runner.resident_bytes
    with board.deciding() as arbiter:
        seat = arbiter.seats[number]
        room = arbiter.room_bytes() + seat.resident_bytes  # what it has claimed is its own
        if size_bytes <= room:
            seat.resident_bytes = size_bytes
    if size_bytes > room:
        raise _no_room(size_bytes, room, board)


def _no_room(size_bytes: int, room: float, board: Board) -> ConfigError:
    return ConfigError(
        f"a model takes {size_bytes} bytes of its device, where {room:.0f} are left of "
        f"{board.budget_bytes} (engine.device_bytes): give it another device"
    )
