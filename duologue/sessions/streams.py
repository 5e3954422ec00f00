"""The engine work that one session has running: who asked for it, and under which fence.

This is the choke point for late output: what is not in the table, or carries a stale fence, goes
nowhere and is counted. This module must not know what the work is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from duologue.core.fence import INPUT_LANE, Epochs, Lane
from duologue.engines.payloads import Payload
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


class Owner(Enum):
    """Which part of the session an output belongs to."""

    DETECTOR = "detector"
    END_OF_TURN = "end_of_turn"
    TRANSCRIBER = "transcriber"
    PLUGIN = "plugin"


@dataclass(slots=True)
class Stream:
    """One running request.

    Args:
        key: The owner's own name for it.
        lane: What it is cancelled with.
        speaks: It has produced audio, so its credit is counted in milliseconds of playback.
    """

    request_id: str
    owner: Owner
    key: str
    lane: Lane
    speaks: bool = False


class Streams:
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
        self.epochs.open(INPUT_LANE)
        self.stale_dropped = 0
        self._session_id = session_id
        self._opened = 0
        self.running = 0
        """How many streams there are."""
        self._by_id: dict[str, Stream] = {}
        self._by_key: dict[tuple[Owner, str], Stream] = {}
        self.effects: list[Effect] = []

    def take_effects(self) -> Sequence[Effect]:
        """Return what was collected since the last call."""
        if not self.effects:
            return ()
        effects, self.effects = self.effects, []
        return effects

    def find(self, owner: Owner, key: str) -> Stream | None:
        """Return the running stream of an owner under a key."""
        return self._by_key.get((owner, key))

    def open(
        self,
        owner: Owner,
        key: str,
        pipeline: str,
        *,
        lane: Lane = INPUT_LANE,
        first: Payload | None = None,
        more_input: bool = False,
        credit: int | None = None,
    ) -> Stream:
        """Start a request; a running one under the same key is cancelled first."""
        self.cancel(owner, key)
        self._opened += 1
        request_id = f"{self._session_id}.{self._opened}"
        stream = Stream(request_id, owner, key, lane)
        self._by_id[request_id] = self._by_key[owner, key] = stream
        self.running += 1
        request = Request(request_id, pipeline, self.epochs.fence(lane), first, more_input, credit)
        self.effects.append(SubmitRequest(request))
        return stream

    def append(self, stream: Stream, payload: Payload) -> None:
        """Feed a stream."""
        self.effects.append(AppendInput(stream.request_id, payload))

    def finish(self, stream: Stream) -> None:
        """Say that no more input follows."""
        self.effects.append(FinishInput(stream.request_id))

    def grant(self, stream: Stream, credit: int) -> None:
        """Let a stream produce more."""
        self.effects.append(GrantCredit(stream.request_id, credit))

    def report(self, owner: Owner, code: str) -> None:
        """Let people know that a stream of ours has failed."""
        self.effects.append(ReportFailure(owner.value, code))

    def cancel(self, owner: Owner, key: str) -> None:
        """Stop a stream, if it runs."""
        stream = self._by_key.get((owner, key))
        if stream is not None:
            self._forget(stream)
            self.effects.append(CancelRequest(stream.request_id))

    def open_lane(self, lane: Lane) -> None:
        """Let work be done for a response."""
        self.epochs.open(lane)

    def adopt(self, stream: Stream, lane: Lane) -> None:
        """Move a running stream to another lane: it is stale when that lane is."""
        stream.lane = lane
        self.effects.append(RefenceRequest(stream.request_id, self.epochs.fence(lane)))

    def interrupt_lane(self, lane: Lane) -> None:
        """Stop a response's work: whatever is still on its way is of an old epoch."""
        self.cancel_lane(lane)
        self.epochs.advance(lane)

    def close_lane(self, lane: Lane) -> None:
        """The response is over: stop its work, and take nothing late of it."""
        self.cancel_lane(lane)
        self.epochs.close(lane)

    def cancel_lane(self, lane: Lane) -> None:
        """Stop all streams of a lane."""
        for stream in [s for s in self._by_id.values() if s.lane == lane]:
            self.cancel(stream.owner, stream.key)

    def cancel_of(self, owner: Owner) -> None:
        """Stop all streams of an owner."""
        for stream in [s for s in self._by_id.values() if s.owner is owner]:
            self.cancel(owner, stream.key)

    def cancel_all(self) -> None:
        """Stop everything: the session ends."""
        for stream in list(self._by_id.values()):
            self.cancel(stream.owner, stream.key)

    def opened_ids(self) -> list[str]:
        """Return the ids of all requests so far, also of those that are over."""
        return [f"{self._session_id}.{number + 1}" for number in range(self._opened)]

    def of_lane(self, lane: Lane) -> list[Stream]:
        """Return the running streams of a lane."""
        return [stream for stream in self._by_id.values() if stream.lane == lane]

    def accept(self, event: EngineEvent) -> Stream | None:
        """Return the stream that an event belongs to, or ``None`` for a stale one, counted."""
        stream = self._by_id.get(event.request_id)
        if stream is None or not self.epochs.is_current(event.fence):
            # The last word on a request that we cancelled ourselves is no stale output.
            self.stale_dropped += isinstance(event, Output)
            return None
        return stream

    def ended(self, stream: Stream) -> None:
        """Forget a stream that the engine has ended."""
        self._forget(stream)

    def _forget(self, stream: Stream) -> None:
        del self._by_id[stream.request_id]
        self.running -= 1
        if self._by_key.get((stream.owner, stream.key)) is stream:
            del self._by_key[stream.owner, stream.key]
