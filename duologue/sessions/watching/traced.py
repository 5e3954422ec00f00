"""Notes the moments of each turn for traces; made only where turns are traced.

What comes out of the engine and what goes to the client passes the observer, what goes into the
engine passes ``WatchedEngine``. This module must not change a session, nor know who traces.
"""

from __future__ import annotations

import math
from collections import deque
from typing import Any

from duologue.core.fence import Fence
from duologue.engines.payloads import (
    AudioChunk,
    ChatRequest,
    Payload,
    SpeakText,
    TextDelta,
    Transcript,
)
from duologue.engines.ports import EnginePort, Output, Request, Subscriber
from duologue.protocol.events import (
    Event,
    SpeechStarted,
    SpeechStopped,
)
from duologue.protocol.response_events import AudioDelta, ResponseCreated, ResponseDone
from duologue.sessions.inputs import SessionInput
from duologue.sessions.watching.observer import SessionObserver
from duologue.telemetry.turns import TracedTurn, TraceTurn, TurnTimes

MOST_CANCELLED = 64
"""Requests of one session that were cancelled of late, and may still be heard of."""


class TracedObserver(SessionObserver):
    """Notes what its base does, and when a turn's moments were."""

    __slots__ = ("_audible", "_cancelled", "_model", "_response_id", "_times", "_trace")

    def __init__(self, trace: TraceTurn, session_id: str, model: str, *args: Any) -> None:
        super().__init__(session_id, model, *args)
        self._trace = trace
        self._model = model
        self._times = TurnTimes()
        self._response_id = ""
        self._audible = False
        self._cancelled: deque[str] = deque(maxlen=MOST_CANCELLED)

    def applied(self, item: SessionInput, now: float) -> None:
        """Note the first token and the first audio."""
        if type(item) is Output and item.request_id not in self._cancelled:
            times = self._times
            match item.payload:
                case TextDelta():
                    times.first_token = times.first_token or now
                case AudioChunk():
                    times.first_audio = times.first_audio or now
                case Transcript(kind="final") if not self._audible:
                    times.transcript = now
                case _:
                    pass
        super().applied(item, now)

    def delivered(self, event: Event, now: float) -> None:
        """Note what the client is told, and the first sound that it gets."""
        super().delivered(event, now)
        if isinstance(event, AudioDelta):
            if not self._audible and event.response_id == self._response_id:
                self._audible = True
                self._times.first_audible = now
            if not self._audible:
                self.said_due_at = -math.inf  # that was another answer's
            return
        match event:
            case SpeechStarted() if not self._response_id:
                self._times = TurnTimes()
            case SpeechStopped(audio_end_ms=end_ms):
                if self._response_id:
                    # The turn of an answer that still runs: its moments are those of the next one.
                    self._finish("overlapped", "", now)
                times = self._times
                times.speech_end, times.end_of_turn = self._moment(end_ms, now), now
            case ResponseCreated(response=response):
                self._response_id = self._response_id or response.id
            case ResponseDone(response=response) if response.id == self._response_id:
                details = response.status_details
                reason = details.reason if details is not None else None
                self._finish(response.status, reason or "", now)
            case _:
                pass

    def sent(self, payload: Payload | None, now: float) -> None:
        """Note what goes into the engine: a question begins anew, a clause is the first one."""
        times = self._times
        if type(payload) is ChatRequest and not self._audible:
            times.first_token = times.first_clause = times.first_audio = None
        elif type(payload) is SpeakText and payload.text:
            times.first_clause = times.first_clause or now

    def cancelled(self, request_id: str) -> None:
        """What still comes of a request belongs to no turn any more."""
        self._cancelled.append(request_id)

    def now(self) -> float:
        """Tell the time."""
        return self._observation.clock.now()

    def _finish(self, status: str, reason: str, now: float) -> None:
        times, self._times = self._times, TurnTimes()
        times.done = now
        response_id, self._response_id = self._response_id, ""
        self._audible = False
        self._trace(TracedTurn(self._session_id, self._model, response_id, status, reason, times))


class WatchedEngine:
    """An ``EnginePort`` that shows an observer what goes in."""

    def __init__(self, engine: EnginePort, observer: TracedObserver) -> None:
        self._engine = engine
        self._observer = observer
        self.has_pipeline = engine.has_pipeline
        self.finish_input = engine.finish_input
        self.grant = engine.grant

    def submit(self, request: Request, subscriber: Subscriber) -> None:
        """Submit a request, and show its first input."""
        self._observer.sent(request.first, self._observer.now())
        self._engine.submit(request, subscriber)

    def append(self, request_id: str, payload: Payload) -> None:
        """Append to a request; audio, which comes for every frame, is not shown."""
        if type(payload) is not AudioChunk:
            self._observer.sent(payload, self._observer.now())
        self._engine.append(request_id, payload)

    def cancel(self, request_id: str) -> None:
        """Cancel a request, and show it."""
        self._observer.cancelled(request_id)
        self._engine.cancel(request_id)

    def subscribe(self, request_id: str, subscriber: Subscriber) -> None:
        """Send further events elsewhere."""
        self._engine.subscribe(request_id, subscriber)

    def refence(self, request_id: str, fence: Fence) -> None:
        """Let further events carry another fence."""
        self._engine.refence(request_id, fence)


def watched(engine: EnginePort, observer: SessionObserver) -> EnginePort:
    """Return the engine as a session is to use it: itself, unless the observer wants to see."""
    return WatchedEngine(engine, observer) if isinstance(observer, TracedObserver) else engine
