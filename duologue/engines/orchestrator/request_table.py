"""Requests and the state of each of their stages: pure, inputs and ``now`` in, effects out.

One promise holds whatever the order of events: a request has exactly one ``Ended`` and nothing
after it, and it leaves the table only when each of its stages has ended, so that no slot is
forgotten. This module must not know pools, workers or clocks.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import msgspec

from duologue.core.errors import EngineError, StageTimeout
from duologue.core.fence import Fence
from duologue.engines.edges import EDGES, Ahead, Edge
from duologue.engines.messages import Append, Cancel, Finish, Grant, JobMessage, Open
from duologue.engines.payloads import Payload
from duologue.engines.pipeline import Pipeline
from duologue.engines.ports import Ended, EngineEvent, Outcome, Output, Request

DUPLICATE_REQUEST = "server_error"
"""A bug of ours, and no business of a client's."""


class _Effect(msgspec.Struct, frozen=True, gc=False):
    """Two are made for each frame; a Struct is made in a tenth of a frozen dataclass's time."""


class ToStage(_Effect, frozen=True):
    """Send a message to the job of a request at a stage."""

    stage: str
    message: JobMessage


class Deliver(_Effect, frozen=True):
    """Hand an event to the request's subscriber."""

    event: EngineEvent


class KillWorker(_Effect, frozen=True):
    """The worker that holds a job did not acknowledge its cancel in time."""

    stage: str
    job: str


class Drop(_Effect, frozen=True):
    """An output came too late; it is only counted."""

    stage: str


Effect = ToStage | Deliver | KillWorker | Drop
"""What the table asks of the engine.

A list of effects holds at most one ``Deliver``, at its end: what its subscriber does to the table
in return therefore finds nothing left to be done.
"""


@dataclass(slots=True)
class _Hop:
    """From one stage to the next.

    Args:
        credit: Whether the stage before must be granted what the next one has taken.
        on_the_way: For each output that was handed on: how many inputs it became that were not
            taken yet, and what it cost.
    """

    edge: Edge
    credit: bool
    on_the_way: deque[list[int]] = field(default_factory=deque)


@dataclass(slots=True)
class _Entry:
    """A request in the table.

    Args:
        stages: Keys, in order.
        running: Indices of stages whose job has not ended.
        input_open: More input may come.
        verdict: How it ends, once that is known.
        told: The verdict was delivered.
        due: When to look at it again.
    """

    request: Request
    stages: tuple[str, ...]
    hops: tuple[_Hop, ...]
    running: set[int]
    input_open: bool
    due: float | None
    verdict: Ended | None = None
    told: bool = False


class RequestTable:
    """All requests that have not ended at every stage.

    Args:
        cancel_grace_s: How long a stage may take to acknowledge a cancel.
        edges: Edge functions by name.
    """

    def __init__(self, cancel_grace_s: float, edges: Mapping[str, Edge] = EDGES) -> None:
        self._cancel_grace_s = cancel_grace_s
        self._edges = edges
        self._entries: dict[str, _Entry] = {}
        # May hold times of entries that have another one by now, or are gone: skipped when popped.
        self._due: list[tuple[float, str]] = []

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, request_id: str) -> bool:
        return request_id in self._entries

    def submit(self, request: Request, pipeline: Pipeline) -> Sequence[Effect]:
        """Open a job at every stage.

        Raises:
            EngineError: A request of this id is still in the table.
        """
        if request.id in self._entries:
            raise EngineError(f"a request {request.id} is running", code=DUPLICATE_REQUEST)
        count = len(pipeline.stages)
        entry = _Entry(
            request=request,
            stages=tuple(pipeline.stage_key(index) for index in range(count)),
            hops=tuple(
                _Hop(self._edges[stage.edge], stage.credit is not None)
                for stage in pipeline.stages[:-1]
            ),
            running=set(range(count)),
            input_open=request.more_input,
            due=request.deadline_s,
        )
        self._entries[request.id] = entry
        self._set_due(entry, request.deadline_s)
        return [
            ToStage(
                entry.stages[index],
                Open(
                    job=request.id,
                    first=request.first if index == 0 else None,
                    input_ended=not request.more_input if index == 0 else False,
                    credit=request.credit if index == count - 1 else stage.credit,
                    taken_at_once=index > 0 and entry.hops[index - 1].credit,
                ),
            )
            for index, stage in enumerate(pipeline.stages)
        ]

    def append(self, request_id: str, payload: Payload) -> Sequence[Effect]:
        """Hand input to the first stage."""
        entry = self._open_for_input(request_id)
        return (ToStage(entry.stages[0], Append(request_id, payload)),) if entry else ()

    def finish_input(self, request_id: str) -> Sequence[Effect]:
        """Tell the first stage that no input follows."""
        entry = self._open_for_input(request_id)
        if entry is None:
            return ()
        entry.input_open = False
        return (ToStage(entry.stages[0], Finish(request_id)),)

    def grant(self, request_id: str, credit: int) -> Sequence[Effect]:
        """Let the last stage produce more. One that ended meanwhile needs none."""
        entry = self._entries.get(request_id)
        if entry is None or entry.verdict is not None:
            return ()
        return (ToStage(entry.stages[-1], Grant(request_id, credit)),)

    def refence(self, request_id: str, fence: Fence) -> None:
        """Put another fence on all that is still to be delivered."""
        entry = self._entries.get(request_id)
        if entry is None:
            return
        entry.request = replace(entry.request, fence=fence)
        if entry.verdict is not None:
            entry.verdict = replace(entry.verdict, fence=fence)

    def cancel(self, request_id: str, now: float) -> Sequence[Effect]:
        """Cancel every stage; ``Ended`` follows when all have acknowledged."""
        entry = self._entries.get(request_id)
        if entry is None or entry.verdict is not None:
            return ()
        return self._decide(entry, Outcome.CANCELLED, now)

    def on_output(self, stage: str, request_id: str, payload: Payload) -> Sequence[Effect]:
        """A stage produced something: it is an output, or input of the next stage."""
        entry = self._entries.get(request_id)
        if entry is None or entry.verdict is not None:
            return (Drop(stage),)
        index = entry.stages.index(stage)
        if index == len(entry.hops):
            return (Deliver(Output(request_id, entry.request.fence, payload)),)
        hop = entry.hops[index]
        following = hop.edge(payload)
        if isinstance(following, Ahead):
            return self._past_the_rest(entry, index, payload.cost(), following.payload)
        if hop.credit:
            if not following:
                return (ToStage(stage, Grant(request_id, payload.cost())),)
            hop.on_the_way.append([len(following), payload.cost()])
        next_stage = entry.stages[index + 1]
        return [ToStage(next_stage, Append(request_id, each)) for each in following]

    def on_taken(self, stage: str, request_id: str, count: int) -> Sequence[Effect]:
        """A stage has used up inputs: the stage before may go on by what they had cost."""
        entry = self._entries.get(request_id)
        if entry is None or entry.verdict is not None:
            return ()
        index = entry.stages.index(stage) - 1
        if index < 0 or not entry.hops[index].credit:
            return ()
        on_the_way = entry.hops[index].on_the_way
        granted = 0
        while count:
            oldest = on_the_way[0]
            taken = min(count, oldest[0])
            oldest[0] -= taken
            count -= taken
            if not oldest[0]:
                granted += oldest[1]
                on_the_way.popleft()
        return (ToStage(entry.stages[index], Grant(request_id, granted)),) if granted else ()

    def on_ended(
        self, stage: str, request_id: str, outcome: Outcome, code: str, message: str, now: float
    ) -> Sequence[Effect]:
        """A stage is done with a request, for whatever reason."""
        entry = self._entries[request_id]
        index = entry.stages.index(stage)
        entry.running.discard(index)
        if entry.verdict is not None:
            return self._leave_if_done(entry)
        last = len(entry.stages) - 1
        if outcome is Outcome.COMPLETED and index < last:
            return (ToStage(entry.stages[index + 1], Finish(request_id)),)
        return self._decide(entry, outcome, now, code, message)

    def fail(self, request_id: str, error: EngineError, now: float) -> Sequence[Effect]:
        """End a request for a reason that lies outside its stages."""
        entry = self._entries.get(request_id)
        if entry is None or entry.verdict is not None:
            return ()
        return self._decide(entry, Outcome.FAILED, now, error.code, error.message)

    def request_ids(self) -> Sequence[str]:
        """All requests in the table."""
        return list(self._entries)

    def next_deadline(self) -> float | None:
        """When ``on_timer`` must be called."""
        while self._due:
            when, request_id = self._due[0]
            entry = self._entries.get(request_id)
            if entry is not None and entry.due == when:
                return when
            heapq.heappop(self._due)
        return None

    def on_timer(self, now: float) -> Sequence[Effect]:
        """Do what is due for one request; call until ``next_deadline`` lies ahead."""
        when = self.next_deadline()
        if when is None or when > now:
            return ()
        _, request_id = heapq.heappop(self._due)
        entry = self._entries[request_id]
        entry.due = None
        if entry.verdict is None:
            error = StageTimeout(f"no answer by its deadline, {now - when:.3f} s ago")
            return self._decide(entry, Outcome.FAILED, now, error.code, error.message)
        return [KillWorker(entry.stages[index], request_id) for index in sorted(entry.running)]

    def _past_the_rest(
        self, entry: _Entry, index: int, cost_here: int, payload: Payload
    ) -> Sequence[Effect]:
        """Deliver what a stage in the middle gives to the caller itself.

        Nobody takes it on the way, so its stage gets the credit back; the caller will grant what
        it takes to the last stage, so that one is charged.
        """
        request = entry.request
        effects: list[Effect] = []
        if entry.hops[index].credit:
            effects.append(ToStage(entry.stages[index], Grant(request.id, cost_here)))
        if request.credit is not None:
            effects.append(ToStage(entry.stages[-1], Grant(request.id, -payload.cost())))
        effects.append(Deliver(Output(request.id, request.fence, payload)))
        return effects

    def _open_for_input(self, request_id: str) -> _Entry | None:
        entry = self._entries.get(request_id)
        if entry is None or not entry.input_open or entry.verdict is not None:
            return None
        return entry

    def _decide(
        self, entry: _Entry, outcome: Outcome, now: float, code: str = "", message: str = ""
    ) -> Sequence[Effect]:
        request = entry.request
        entry.verdict = Ended(request.id, request.fence, outcome, code, message)
        effects: list[Effect] = [
            ToStage(entry.stages[index], Cancel(request.id)) for index in sorted(entry.running)
        ]
        if entry.running:
            self._set_due(entry, now + self._cancel_grace_s)
        if outcome is Outcome.FAILED:
            # Nobody should wait for a stage that may hang, and failing is all that was to be said.
            entry.told = True
            effects.append(Deliver(entry.verdict))
        effects.extend(self._leave_if_done(entry))
        return effects

    def _leave_if_done(self, entry: _Entry) -> Sequence[Effect]:
        if entry.running:
            return ()
        del self._entries[entry.request.id]
        if entry.told or entry.verdict is None:
            return ()
        return (Deliver(entry.verdict),)

    def _set_due(self, entry: _Entry, when: float | None) -> None:
        entry.due = when
        if when is not None:
            heapq.heappush(self._due, (when, entry.request.id))
            if len(self._due) > 2 * len(self._entries) + 64:
                self._due = [
                    (each.due, request_id)
                    for request_id, each in self._entries.items()
                    if each.due is not None
                ]
                heapq.heapify(self._due)
