"""The engine as its callers see it: submit a request, append to it, cancel it, receive outputs.

Callers are sessions, HTTP routes and jobs. This module must not know how work is placed or run.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Protocol

import msgspec

from duologue.core.fence import Fence
from duologue.engines.payloads import Payload


class WorkClass(Enum):
    """What lateness costs at a stage. Slots and workers belong to stages, never to several."""

    REALTIME = "realtime"
    """A deadline for every frame."""

    INTERACTIVE = "interactive"
    """The first output matters."""

    BATCH = "batch"
    """Throughput matters: images, video. Worker processes yield the cores to all others."""


class Outcome(Enum):
    """How a request ended."""

    COMPLETED = "completed"
    CANCELLED = "cancelled"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Request:
    """Work for a pipeline. With ``more_input`` it is a stream, and appends follow.

    Args:
        id: Unique in this process; outputs carry it.
        pipeline: Name of a pipeline, as ``asr`` or ``llm``.
        fence: Comes back on every event, so that late ones are recognised; see ``refence``.
        first: The first input, if there is one already.
        more_input: Appends follow, ended by ``finish_input``.
        credit: What the last stage may produce before it must be granted more: milliseconds for
            audio, a count for all else. ``None``: the stage may not be slowed (detectors).
        deadline_s: The monotonic time after which an answer is of no use.
    """

    id: str
    pipeline: str
    fence: Fence
    first: Payload | None = None
    more_input: bool = False
    credit: int | None = None
    deadline_s: float | None = None


class Output(msgspec.Struct, frozen=True, gc=False):
    """One payload from the last stage of a request's pipeline.

    A struct, not a dataclass: one is made for every token and frame, at a tenth of the cost.
    """

    request_id: str
    fence: Fence
    payload: Payload


@dataclass(frozen=True, slots=True)
class Ended:
    """The last word on a request; nothing with its id follows.

    Args:
        code: Stable name of the reason when ``outcome`` is FAILED, else empty.
        message: For logs. Not for clients.
    """

    request_id: str
    fence: Fence
    outcome: Outcome
    code: str = ""
    message: str = ""


EngineEvent = Output | Ended


class Subscriber(Protocol):
    """Takes what comes out of requests.

    Concurrency:
        Called on the event loop, in order for one request, several times a tick.
    """

    def on_engine_event(self, event: EngineEvent) -> None:
        """Take one event. Must not raise and must not wait."""
        ...


class EnginePort(Protocol):
    """Everything a caller may ask of the engine. No method waits.

    Concurrency:
        Belongs to the event loop.
    """

    def has_pipeline(self, name: str) -> bool:
        """Tell whether requests for ``name`` can be served."""
        ...

    def submit(self, request: Request, subscriber: Subscriber) -> None:
        """Accept a request; its events go to ``subscriber``, ending with one ``Ended``.

        Raises:
            CapacityError: All slots of a stage are taken and so is its queue; or a stage sleeps, or
                is paused.
            EngineError: No such pipeline, no replica of a stage is alive, the id is in use, or the
                first input is larger than all that may wait for a request.
        """
        ...

    def append(self, request_id: str, payload: Payload) -> None:
        """Add input to a stream. After its ``Ended`` this does nothing: news may be on its way.

        A request that has more waiting than its stage allows fails with the code ``rate_limited``.
        """
        ...

    def finish_input(self, request_id: str) -> None:
        """Say that no further input follows; the stream ends when it has answered what it has."""
        ...

    def cancel(self, request_id: str) -> None:
        """Stop a request, out of band, overtaking its appends.

        Every stage acknowledges; then one ``Ended`` with CANCELLED arrives. Outputs that were on
        their way may arrive before it.
        """
        ...

    def grant(self, request_id: str, credit: int) -> None:
        """Let the last stage of a request produce ``credit`` more (see ``Request.credit``)."""
        ...

    def subscribe(self, request_id: str, subscriber: Subscriber) -> None:
        """Send the further events of a running request to another subscriber."""
        ...

    def refence(self, request_id: str, fence: Fence) -> None:
        """Let the further events of a running request, its ``Ended`` included, carry ``fence``.

        For work whose owner changes while it runs, as a draft that becomes the answer. What was
        delivered before keeps its fence. After the ``Ended`` this does nothing.
        """
        ...
