"""What is noted about a session while it runs: logs, figures, flight recorder.

This module must not change a session.
"""

from __future__ import annotations

from duologue.engines.payloads import AudioChunk
from duologue.engines.ports import Output, Request
from duologue.protocol.commands import AppendAudio
from duologue.protocol.events import Event
from duologue.protocol.response_events import AudioDelta, ResponseDone
from duologue.sessions.inputs import SessionInput
from duologue.telemetry import Counter, Family, FlightRecorder, Gauge, Logger


class SessionObserver:
    """Notes of one session.

    Args:
        log: Bound to the session.
        recorder: Keeps the last inputs and effects, without content.
        sessions_active: Counts open sessions.
        session_closed: Counts ends by reason.
    """

    def __init__(
        self,
        log: Logger,
        recorder: FlightRecorder,
        sessions_active: Gauge,
        session_closed: Family[Counter],
    ) -> None:
        self.recorder = recorder
        self._log = log
        self._sessions_active = sessions_active
        self._session_closed = session_closed

    def opened(self, model: str) -> None:
        """The session is there."""
        self._sessions_active.inc()
        self._log.info("session_opened", model=model)

    def applied(self, item: SessionInput, now: float) -> None:
        """The machine is about to take an input."""
        if isinstance(item, AppendAudio):
            self.recorder.record(AppendAudio, now, len(item.audio))
        elif isinstance(item, Output):
            payload = item.payload
            size = len(payload.pcm) if isinstance(payload, AudioChunk) else 0
            self.recorder.record(type(payload), now, size, 0, item.fence.epoch)
        else:
            self.recorder.record(type(item), now)

    def delivered(self, event: Event, now: float) -> None:
        """An event was handed to the connection."""
        if isinstance(event, AudioDelta):
            self.recorder.record(AudioDelta, now, len(event.delta))
            return
        self.recorder.record(type(event), now)
        if isinstance(event, ResponseDone):
            response = event.response
            self._log.info("response_done", response_id=response.id, status=response.status)

    def refused(self, request: Request, exc: Exception) -> None:
        """The engine did not take a request."""
        self._log.warning("request_refused", pipeline=request.pipeline, error=type(exc).__name__)

    def crashed(self, exc: Exception) -> None:
        """A bug: the session closes."""
        self._log.error("session_crashed", exc_info=exc)

    def closed(self, reason: str) -> None:
        """The session is over."""
        self._sessions_active.inc(-1)
        self._session_closed[reason].inc()
        self._log.info("session_closed", reason=reason)
