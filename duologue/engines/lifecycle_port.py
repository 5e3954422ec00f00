"""Stages that rest: what may be ordered of them, and what comes of it.

The levels of sleep are those of vLLM. At 1 the weights stay in the host's memory, what was on the
device and all caches are let go; at 2 the weights are let go, too, and read again at wake. A model
that cannot keep its weights apart sleeps at 2 where 1 was asked for, and says so. This module must
not know how an order is carried out.
"""

from __future__ import annotations

from typing import Annotated, Literal, Protocol, TypeAlias

import msgspec

from duologue.engines.pools.start_report import StartReport

Level: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=2)]
OFFLOADED, DROPPED = 1, 2
"""The levels: weights in the host's memory; weights to be read again."""

Seconds: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=86_400)]
Mode: TypeAlias = Literal["wait", "abort"]
PauseMode: TypeAlias = Literal["wait", "abort", "keep"]
AckStatus: TypeAlias = Literal["SUCCESS", "SKIPPED", "ERROR"]

SLEEP_UNSUPPORTED = "sleep_unsupported"
STAGE_ASLEEP = "stage_asleep"
STAGE_PAUSED = "stage_paused"
STAGE_UNKNOWN = "stage_not_found"
IN_TRANSITION = "stage_in_transition"


class _Order(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    stage_ids: Annotated[tuple[str | int, ...], msgspec.Meta(min_length=1, max_length=4096)] | (
        None
    ) = None
    """Names as in figures, or numbers in the order of ``GET /v1/omni/stages``; null: all."""


class SleepStages(_Order, frozen=True, kw_only=True, tag="sleep", tag_field="order"):
    """Let memory go. New work is refused from now on.

    Args:
        level: 1 or 2.
        mode: What becomes of work that runs or waits: it ends by itself, or is aborted.
        timeout_s: With ``wait``, what has not ended after so long is aborted.
    """

    level: Level = DROPPED
    mode: Mode = "wait"
    timeout_s: Seconds | None = None


class WakeStages(_Order, frozen=True, kw_only=True, tag="wake", tag_field="order"):
    """Be ready for work again. What is paused stays so."""


class PauseStages(_Order, frozen=True, kw_only=True, tag="pause", tag_field="order"):
    """Begin no work.

    Args:
        mode: What becomes of work that runs: it ends by itself, is aborted, or is kept where it is
            until the stage resumes. The pause is complete when no step is in progress.
        queue: What becomes of work that waits, or comes: it waits for the end of the pause, as far
            as the stage's queue has room, or it is refused.
        timeout_s: With ``wait``, what has not ended after so long is aborted.
    """

    mode: PauseMode = "wait"
    queue: Literal["wait", "refuse"] = "wait"
    timeout_s: Seconds | None = None


class ResumeStages(_Order, frozen=True, kw_only=True, tag="resume", tag_field="order"):
    """Begin work again."""


Order: TypeAlias = SleepStages | WakeStages | PauseStages | ResumeStages


class StageAck(msgspec.Struct, frozen=True, kw_only=True):
    """What one replica has to say to an order.

    Args:
        task_id: Of the transition, the same for all replicas of a stage; who gives an order that
            is being carried out already gets the same one.
        status: ``SKIPPED``: it was so already.
        rank: Which replica.
        level: At which it sleeps now; 0: it is awake.
        freed_bytes: Memory of the host that it holds no more, as measured; less than 0 at wake.
        device_freed_bytes: Likewise, of a device.
        restarted: Its process died meanwhile, and a new one is as it should be.
        code, message: Where it went wrong.
        host: Of which session host, where there are several.
    """

    task_id: str
    status: AckStatus
    stage_id: str
    rank: int
    level: int = 0
    freed_bytes: int = 0
    device_freed_bytes: int = 0
    took_s: float = 0.0
    restarted: bool = False
    code: str = ""
    message: str = ""
    host: str = ""


class ReplicaLook(msgspec.Struct, frozen=True, kw_only=True):
    """A look at a replica.

    Args:
        state: Of its process: ``starting``, ``ready``, ``failing``, ``stopped``.
        level: At which it sleeps; 0: it is awake.
        phase: Of its start, while it starts.
        start_s: How long its last start took; ``phases``: and each of its phases.
    """

    name: str
    state: str
    level: int = 0
    phase: str = ""
    start_s: float = 0.0
    phases: dict[str, float] = {}


class StageLook(msgspec.Struct, frozen=True, kw_only=True):
    """A look at a stage.

    Args:
        number: As an order may call it.
        state: ``awake``, ``pausing``, ``paused``, ``going_to_sleep``, ``asleep``, ``waking`` or
            ``failed``: some replicas have what was ordered, and some have not.
        failed: The transition that did not succeed, until one does; ``error``: why.
        paused: Whatever its state, no work begins; ``kept``: nor does any go on.
        level: At which it sleeps; 0: it is awake.
        running, queued: Jobs.
    """

    stage_id: str
    number: int
    state: str
    replicas: list[ReplicaLook]
    paused: bool = False
    kept: bool = False
    level: int = 0
    running: int = 0
    queued: int = 0
    failed: str = ""
    error: str = ""


class EngineLook(msgspec.Struct, frozen=True, kw_only=True):
    """A look at all stages of an engine.

    Args:
        start: How its workers started, when the engine did.
        host: Of which session host it is, where there are several.
    """

    stages: list[StageLook]
    start: StartReport
    host: str = ""


class LifecyclePort(Protocol):
    """Gives orders to stages, wherever their engine is.

    Concurrency:
        Belongs to the event loop. An order goes on without whoever gave it.
    """

    async def carry_out(self, order: Order) -> list[StageAck]:
        """Carry an order out at each of its stages, side by side; returns what replicas said.

        Nothing is raised for what goes wrong at a stage: the acknowledgements say it. Where an
        order concerns all stages, those that cannot sleep are skipped.

        Raises:
            ClientError: There is no such stage; nothing was done.
        """
        ...

    async def look(self) -> list[EngineLook]:
        """Return what all stages of each engine look like."""
        ...
