"""What a runner is: a model behind ``step``. It knows tensors and payloads, not sessions.

A worker holds one runner and the jobs that are open on it. Its loop asks a scheduler which jobs
to step, calls ``step`` once, posts what came out, and looks at cancellations in between. So a
step is the unit of everything: one window of a detector, one token of a language model, one
clause of a synthesiser, one frame of a lockstep batch, a few denoising steps of an image.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from duologue.core.errors import EngineError
from duologue.engines.arbiter.device_arbiter import Beat
from duologue.engines.frame_counts import FrameCounts
from duologue.engines.payloads import Payload


@dataclass(eq=False, slots=True)
class Job:
    """One request at one stage, from ``Runner.open`` to ``Runner.close``.

    Args:
        id: Unique in the worker.
        inputs: Payloads that no step has taken yet; a step takes from the left.
        input_ended: No further input will come.
        cancelled: Set out of band. A long step should look at it and return early.
        state: Belongs to the runner.
        credit: What may still be produced; ``None`` is without bound. Kept by the worker.
    """

    id: str
    inputs: deque[Payload] = field(default_factory=deque)
    input_ended: bool = False
    cancelled: bool = False
    state: Any = None
    credit: int | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """What one job got out of a step.

    Args:
        outputs: In order.
        done: The job has nothing more to give; it will be closed.
        error: The job failed and will be closed; others of the batch go on.
    """

    outputs: Sequence[Payload] = ()
    done: bool = False
    error: EngineError | None = None


class Runner(Protocol):
    """A loaded model.

    Concurrency:
        All methods are called from one thread of the worker. ``Job.cancelled`` may be set from
        another one at any time.
    """

    max_batch: int
    """How many jobs one step may take."""

    def warm_up(self) -> None:
        """Make the first real step as fast as the later ones. Called once, before ready."""
        ...

    def open(self, job: Job) -> None:
        """Give a new job its state.

        Raises:
            EngineError: There is no room for it.
        """
        ...

    def ready(self, job: Job) -> bool:
        """Tell whether a step would get anywhere with this job now."""
        ...

    def step(self, jobs: Sequence[Job]) -> Sequence[Step]:
        """Advance each job by one step; the result has one entry per job, in order.

        Raises:
            EngineError: The whole batch failed. Any other exception kills the worker.
            MemoryError: The whole batch failed, too: a step that broke off half-way cannot be run
                again. Where jobs share no work, ``apart.step_apart`` fails one of them alone.
        """
        ...

    def close(self, job: Job) -> None:
        """Free what ``open`` took. Called exactly once per opened job, also after a cancel."""
        ...


@runtime_checkable
class Capturing(Protocol):
    """A runner whose steps replay graphs, which are made once."""

    def capture(self) -> None:
        """Make them. Called once, before ``warm_up``."""
        ...


@runtime_checkable
class Sleeper(Protocol):
    """A runner that has something to do when its memory is to be let go.

    Which levels there are says its ``RunnerType.sleep_levels``. One that holds nothing but what
    goes with it needs none of this: at level 2 the worker drops it, and builds another at wake.

    Concurrency:
        As of ``Runner``. No job is open.
    """

    def sleep(self, level: int) -> None:
        """Let memory go: at level 1 all but the weights, which are kept in the host's memory.

        At level 2, whatever would outlive the runner: it is dropped after this. May be called at
        level 2 while it sleeps at level 1.

        Raises:
            EngineError: It cannot, and is as it was.
        """
        ...

    def wake(self) -> None:
        """Be as before, after level 1.

        Raises:
            EngineError: It cannot, and sleeps on.
            MemoryError: Likewise.
        """
        ...


@runtime_checkable
class Sliced(Protocol):
    """A runner of batch work whose step can be made shorter, for devices that calls use, too.

    Args:
        slice_s: How long the next step may last before the next point ends it; set before each, and
            before ``warm_up``, on a device that is shared.
        longest_part_s: Of the last step, or of those of ``warm_up``: the longest time between two
            points at which it could have ended.
    """

    slice_s: float
    longest_part_s: float

    def slice_shape(self, jobs: Sequence[Job]) -> Hashable:
        """Return what the parts' length depends on, of that which the next step would work on."""
        ...


@runtime_checkable
class LoadsInParts(Protocol):
    """A runner of batch work that is built in the host's memory, and asks to use its device.

    Args:
        turn: Set before ``warm_up``, ``sleep`` and ``wake`` on a device that is shared. All that
            these do on the device they do in parts, each within ``with turn():``. To enter waits
            until a part may begin, and sets ``slice_s`` of one that is ``Sliced``. A part has ended
            when the device has done it.
    """

    turn: Callable[[], AbstractContextManager[None]]


@runtime_checkable
class HoldsMemory(Protocol):
    """A runner that knows what it takes of its device.

    Args:
        resident_bytes: For as long as it lives; asked for once it is warm, and before anything of
            it is on its device of one that ``LoadsInParts``.
    """

    @property
    def resident_bytes(self) -> int:
        """See above."""
        ...

    def job_bytes(self, job: Job) -> int:
        """Return what a job will take, from what it asks for: nothing of it exists yet."""
        ...


@runtime_checkable
class KeepsBeat(Protocol):
    """A realtime runner that computes at times of its own.

    Args:
        on_beat: Set before ``warm_up`` on a device that batch work shares; to be told of each step
            that begins, and of the next one after it. It takes microseconds.
    """

    on_beat: Callable[[Beat], None]


@runtime_checkable
class CountsFrames(Protocol):
    """A runner whose streams are stepped at a beat of its own, beside the worker's steps."""

    @property
    def holds(self) -> int:
        """How many jobs are in time at once. Known after ``warm_up``."""
        ...

    def counted(self) -> FrameCounts:
        """Return what happened to the frames of all jobs so far. It never falls."""
        ...
