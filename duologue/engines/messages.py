"""What the engine and a worker say to each other; the same in one process, over a socket, or far.

Both directions are closed unions. This module must not know how messages travel.
"""

from __future__ import annotations

from typing import Any

import msgspec

from duologue.engines.frame_counts import FrameCounts
from duologue.engines.payloads import Payload
from duologue.engines.ports import Outcome, WorkClass
from duologue.engines.transport.port import Handle


class Placement(msgspec.Struct, frozen=True, kw_only=True):
    """A worker's place in a cluster, as one of a group whose places are taken together.

    Args:
        group: Name of the pipeline.
        strategy: As the cluster has it, as ``PACK``: on as few machines as possible.
        bundles: What each place of the group takes, as ``{"CPU": 1, "GPU": 1}``.
        index: Which of them is this worker's.
    """

    group: str
    strategy: str
    bundles: tuple[dict[str, float], ...]
    index: int

    @property
    def bundle(self) -> dict[str, float]:
        """What this worker takes."""
        return self.bundles[self.index]


class Share(msgspec.Struct, frozen=True, kw_only=True):
    """A worker's part in a device that others use, too.

    Args:
        board: Descriptor of the memory where all of them sit; a child process inherits it.
        seat: Which is this worker's.
        device: For messages.
        period_s: Of a realtime worker: its steps must be done so long after their input came.
    """

    board: int
    seat: int
    device: str
    period_s: float = 0.0


class WorkerSpec(msgspec.Struct, frozen=True, kw_only=True):
    """All that a worker must be told to become one.

    Args:
        name: For logs, as ``tts/0``.
        settings: Raw; the runner's own settings class checks them in the worker.
        env: Set before the worker imports anything, where it has a process of its own.
        interpreter: The Python that runs the worker; ``None``: this one.
        transport: Which way large payloads take, see ``transport.choice``.
        slab_bytes: Room for them in each direction; 0: all goes with the messages.
        relays: Another worker of the same transport gets what it makes, unchanged.
        placement: Where, with an executor that has several machines.
        asleep: It loads nothing before it is told to wake.
        share: In a device; ``None``: it need not ask anybody.
    """

    name: str
    runner: str
    settings: dict[str, Any] = {}
    scheduler: str = "fifo"
    work_class: WorkClass = WorkClass.INTERACTIVE
    env: dict[str, str] = {}
    interpreter: str | None = None
    placement: Placement | None = None
    transport: str = "auto"
    slab_bytes: int = 64 * 1024 * 1024
    relays: bool = False
    asleep: bool = False
    share: Share | None = None


class _Message(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=True):
    pass


# To a worker


class Open(_Message, frozen=True):
    """Begin a job.

    Args:
        taken_at_once: Say after each step with ``JobTaken`` what it took: the stage before waits
            for it. Otherwise now and then is enough.
    """

    job: str
    first: Payload | None = None
    input_ended: bool = True
    credit: int | None = None
    taken_at_once: bool = False


class Append(_Message, frozen=True):
    """Further input of a job."""

    job: str
    payload: Payload


class Finish(_Message, frozen=True):
    """No further input for a job."""

    job: str


class Grant(_Message, frozen=True):
    """A job may produce this much more; less, if negative."""

    job: str
    credit: int


class Cancel(_Message, frozen=True):
    """Stop a job. Overtakes everything that waits for it; answered by ``JobEnded``."""

    job: str


class Stop(_Message, frozen=True):
    """End all jobs and leave."""


class Sleep(_Message, frozen=True):
    """Let memory go; answered by ``Rested``. No job is open.

    Args:
        level: See ``lifecycle_port``.
    """

    level: int


class Wake(_Message, frozen=True):
    """Be ready for jobs again; answered by ``Rested``."""


class Pause(_Message, frozen=True):
    """Make no step until told otherwise; answered by ``Paused``. Cancels are heard meanwhile.

    Args:
        on: Otherwise go on, which is not answered.
    """

    on: bool


JobMessage = Open | Append | Finish | Grant | Cancel
OfWorker = Stop | Sleep | Wake | Pause
"""What concerns no job."""

ToWorker = JobMessage | OfWorker


# From a worker


class Begun(_Message, frozen=True):
    """A phase of the start begins, see ``worker_model``."""

    phase: str


class Ready(_Message, frozen=True):
    """The runner is loaded and warm.

    Args:
        level: The worker sleeps at this level, and nothing is loaded; 0: it is awake.
        holds: How many jobs it holds in time, as it has found out; ``None``: all that it is given.
    """

    took_s: float
    level: int = 0
    holds: int | None = None


class Counted(_Message, frozen=True):
    """What happened to the frames of all jobs since the last time; of a ``CountsFrames``."""

    counts: FrameCounts


class Rested(_Message, frozen=True):
    """What came of ``Sleep`` or ``Wake``.

    Args:
        level: At which the worker sleeps now, whatever went wrong; 0: it is awake.
        freed_bytes: Of its processes' resident memory, as measured; less than 0: it has more.
        device_freed_bytes: Of memory that its process has taken of devices.
        code, message: As of an ``EngineError``, where it was not done.
        holds: As of ``Ready``, once it is awake.
    """

    level: int
    freed_bytes: int = 0
    device_freed_bytes: int = 0
    took_s: float = 0.0
    code: str = ""
    message: str = ""
    holds: int | None = None


class Paused(_Message, frozen=True):
    """No step is in progress, and none will be until the work goes on."""


class JobOutput(_Message, frozen=True):
    """One payload that a job produced."""

    job: str
    payload: Payload


class JobTaken(_Message, frozen=True):
    """Steps have taken inputs of a job that goes on, so that others may come.

    Args:
        count: How many.
        size_bytes: What they weighed, see ``PayloadBase.size_bytes``.
    """

    job: str
    count: int
    size_bytes: int


class JobEnded(_Message, frozen=True):
    """The last word on a job; also the acknowledgement of its cancel.

    Args:
        code, message, quote: As of an ``EngineError``, where it failed.
    """

    job: str
    outcome: Outcome
    code: str = ""
    message: str = ""
    quote: str = ""


class Died(_Message, frozen=True):
    """The worker's last words.

    Args:
        code: Stable name, as of ``EngineError.code``; ``worker_crashed`` for a foreign exception.
        reason: For logs. Holds no text of foreign exceptions, which may quote what people said.
    """

    code: str
    reason: str


JobReport = JobOutput | JobTaken | JobEnded
FromWorker = Begun | Ready | Rested | Paused | Counted | JobReport | Died


class Report(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What a worker has to say after a step: one write.

    Args:
        step_s: How long the step took; 0 where there was none.
    """

    messages: list[FromWorker]
    step_s: float = 0.0


# Between the two ends of a link, and nobody behind them


class Part(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Bytes of a payload that lie elsewhere.

    Args:
        field: Of the payload, which is empty there.
        item: Which of the field's, where it has several; else -1.
    """

    field: str
    item: int
    handle: Handle


class Apart(_Message, frozen=True):
    """A message whose payload is too large to go with it."""

    message: Open | Append | JobOutput
    parts: tuple[Part, ...]


class Freed(_Message, frozen=True):
    """Whoever was told of these has read them."""

    handles: tuple[Handle, ...]


class ReaderGone(_Message, frozen=True):
    """Another worker is dead, and reads nothing any more, whatever it had begun.

    Args:
        reader: As its reader calls itself to those who write.
    """

    reader: str


Beside = Apart | Freed | ReaderGone
