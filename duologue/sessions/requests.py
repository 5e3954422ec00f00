"""The engine requests that one session has running: who asked for each, and under which fence.

This is the choke point for late output: it goes nowhere, and is counted. Late is what belongs to no
running request, since a cancelled one leaves the table at once and no id is used twice; and what
carries a stale fence, since a request may outlive what it was made for, see ``adopt``.

Not so on ``SESSION_LANE``, which nothing advances: there, only output of cancelled requests is
late. The stream of a lockstep model is such a request. An interruption leaves it running, and its
plugin tells which frames are not to be said. This module must not know what is asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from duologue.core.fence import SESSION_LANE, Epochs, Lane
from duologue.engines.payloads import AudioChunk, Payload
from duologue.engines.ports import EngineEvent, Output, Request
from duologue.sessions.effects import (
    AppendInput,
    CancelRequest,
    Effect,
    FinishInput,
    GrantCredit,
    RefenceRequest,
    ReportFailure,
    SubmitRequest,
)


class Asker(Enum):
    """Which part of the session a request, and so its output, belongs to."""

    DETECTOR = "detector"
    END_OF_TURN = "end_of_turn"
    TRANSCRIBER = "transcriber"
    PLUGIN = "plugin"


@dataclass(slots=True)
class RunningRequest:
    """One request to the engine that has not ended.

    Args:
        key: The asker's own name for it.
        lane: What it is cancelled with.
        speaks: It has produced audio, so its credit is counted in milliseconds of playback.
    """

    request_id: str
    asker: Asker
    key: str
    lane: Lane
    speaks: bool = False


class Requests:
    """Opens, feeds and cancels engine requests, by collecting effects."""

    __slots__ = (
        "_by_id",
        "_by_key",
        "_opened",
        "_session_id",
        "effects",
        "epochs",
        "running",
        "stale_dropped",
    )

    def __init__(self, session_id: str) -> None:
        self.epochs = Epochs(session_id)
        self.epochs.open(SESSION_LANE)
        self.stale_dropped = 0
        self._session_id = session_id
        self._opened = 0
        self.running = 0
        """How many requests there are."""
        self._by_id: dict[str, RunningRequest] = {}
        self._by_key: dict[tuple[Asker, str], RunningRequest] = {}
        self.effects: list[Effect] = []

    def take_effects(self) -> Sequence[Effect]:
        """Return what was collected since the last call."""
        if not self.effects:
            return ()
        effects, self.effects = self.effects, []
        return effects

    def find(self, asker: Asker, key: str) -> RunningRequest | None:
        """Return the running request of an asker under a key."""
        return self._by_key.get((asker, key))

    def open(
        self,
        asker: Asker,
        key: str,
        pipeline: str,
        *,
        lane: Lane = SESSION_LANE,
        first: Payload | None = None,
        more_input: bool = False,
        credit: int | None = None,
    ) -> RunningRequest:
        """Start a request; a running one under the same key is cancelled first."""
        self.cancel(asker, key)
        self._opened += 1
        request_id = f"{self._session_id}.{self._opened}"
        running = RunningRequest(request_id, asker, key, lane)
        self._by_id[request_id] = self._by_key[asker, key] = running
        self.running += 1
        request = Request(request_id, pipeline, self.epochs.fence(lane), first, more_input, credit)
        self.effects.append(SubmitRequest(request))
        return running

    def append(self, request: RunningRequest, payload: Payload) -> None:
        """Feed a request."""
        self.effects.append(AppendInput(request.request_id, payload))

    def finish(self, request: RunningRequest) -> None:
        """Say that no more input follows."""
        self.effects.append(FinishInput(request.request_id))

    def grant(self, request: RunningRequest, credit: int) -> None:
        """Let a request produce more."""
        self.effects.append(GrantCredit(request.request_id, credit))

    def report(self, asker: Asker, code: str) -> None:
        """Let people know that a request of ours has failed."""
        self.effects.append(ReportFailure(asker.value, code))

    def cancel(self, asker: Asker, key: str) -> None:
        """Stop a request, if it runs."""
        request = self._by_key.get((asker, key))
        if request is not None:
            self._forget(request)
            self.effects.append(CancelRequest(request.request_id))

    def open_lane(self, lane: Lane) -> None:
        """Let work be done for a response."""
        self.epochs.open(lane)

    def adopt(self, request: RunningRequest, lane: Lane) -> None:
        """Move a running request to another lane: it is cancelled with that one from now on.

        What it has made before carries the fence of the lane that it leaves, and is stale when that
        is interrupted or closed, though the request goes on.
        """
        request.lane = lane
        self.effects.append(RefenceRequest(request.request_id, self.epochs.fence(lane)))

    def interrupt_lane(self, lane: Lane) -> None:
        """Stop the work of an answer that is cut off: whatever is on its way is of an old epoch."""
        self.cancel_lane(lane)
        self.epochs.advance(lane)

    def close_lane(self, lane: Lane) -> None:
        """The response is over: stop its work, and take nothing late of it."""
        self.cancel_lane(lane)
        self.epochs.close(lane)

    def cancel_lane(self, lane: Lane) -> None:
        """Stop all requests of a lane."""
        for request in [s for s in self._by_id.values() if s.lane == lane]:
            self.cancel(request.asker, request.key)

    def cancel_of(self, asker: Asker) -> None:
        """Stop all requests of an asker."""
        for request in [s for s in self._by_id.values() if s.asker is asker]:
            self.cancel(asker, request.key)

    def cancel_all(self) -> None:
        """Stop everything: the session ends."""
        for request in list(self._by_id.values()):
            self.cancel(request.asker, request.key)

    def opened_ids(self) -> list[str]:
        """Return the ids of all requests so far, also of those that are over."""
        return [f"{self._session_id}.{number + 1}" for number in range(self._opened)]

    def of_lane(self, lane: Lane) -> list[RunningRequest]:
        """Return the running requests of a lane."""
        return [request for request in self._by_id.values() if request.lane == lane]

    def accept(self, event: EngineEvent) -> RunningRequest | None:
        """Return the request that an event belongs to, or ``None`` for a stale one, counted."""
        request = self._by_id.get(event.request_id)
        if request is None or not self.epochs.is_current(event.fence):
            # The last word on a request that we cancelled ourselves is no stale output.
            self.stale_dropped += isinstance(event, Output)
            return None
        if type(event) is Output and type(event.payload) is AudioChunk:
            request.speaks = True
        return request

    def ended(self, request: RunningRequest) -> None:
        """Forget a request that the engine has ended."""
        self._forget(request)

    def _forget(self, request: RunningRequest) -> None:
        del self._by_id[request.request_id]
        self.running -= 1
        if self._by_key.get((request.asker, request.key)) is request:
            del self._by_key[request.asker, request.key]
