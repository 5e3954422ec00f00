"""What is noted about a session while it runs: logs, figures, flight recorder.

This module must not change a session.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from duologue.core.audio import samples_to_ms
from duologue.core.clock import Clock
from duologue.core.errors import DuologueError
from duologue.engines.payloads import AudioChunk, VoiceActivity
from duologue.engines.ports import Output, Request
from duologue.protocol.append_audio import AppendAudio
from duologue.protocol.errors import ErrorCode
from duologue.protocol.events import Event, SpeechStarted, SpeechStopped
from duologue.protocol.response_events import AudioDelta, ResponseCreated, ResponseDone
from duologue.protocol.response_resource import TURN_DETECTED, ResponseResource
from duologue.sessions.inputs import SessionInput
from duologue.telemetry import Flight, FlightRecorder, Kinds, Logger, Metrics, get_logger
from duologue.telemetry.metrics import STOPS
from duologue.telemetry.tape import Tape
from duologue.telemetry.turns import TraceTurn

STALE_AT_SESSION = "session"
"""The stage under which output is counted that a session dropped, rather than the engine."""

STUCK_CODES = (ErrorCode.STAGE_TIMEOUT, ErrorCode.RESPONSE_INAUDIBLE)
"""Of answers that the watchdog has given up."""

AUDIO_NOTE_S = 1.0
"""Audio is noted so often, with its size since the last note: each message would cost as much as
handling it, and fill the recorder with nothing else."""

AudioClock = Callable[[], int]
"""Milliseconds of the person's audio that have come in so far."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """Where the notes of all sessions go.

    Args:
        kinds: Types that flight recorders know.
        recorded_entries: Length of a flight recorder; 0: none.
        keep: Takes the recording of a session that crashed.
        tape: Begins a recording of a whole call; ``None``: calls are not recorded.
        trace: Takes the moments of turns that are over; ``None``: they are not noted.
    """

    metrics: Metrics
    kinds: Kinds
    clock: Clock
    recorded_entries: int
    keep: Callable[[Flight], None]
    tape: Callable[[str], Tape] | None = None
    trace: TraceTurn | None = None


class SessionObserver:
    """Notes of one session.

    Args:
        audio_ms: The session's audio clock, for latencies that begin when somebody spoke.
        onset_ms: Where on it the newest speech began. Events give the beginning of what is kept of
            it, which is earlier.
        heard_hz: Rate of the detector's positions.
        unplayed_s: Speech that was made and is still to be heard, at a time.
    """

    __slots__ = (
        "_audio_ms",
        "_awaiting_audio",
        "_barge_in_stop",
        "_heard_hz",
        "_late_noted_at",
        "_log",
        "_metrics",
        "_observation",
        "_onset_ms",
        "_output_buffer",
        "_recorder",
        "_session_id",
        "_speech_began_at",
        "_speech_ended_at",
        "_ttfa",
        "_unplayed_s",
        "heard_bytes",
        "heard_due_at",
        "said_at",
        "said_bytes",
        "said_due_at",
    )

    def __init__(
        self,
        session_id: str,
        model: str,
        observation: Observation,
        audio_ms: AudioClock,
        onset_ms: AudioClock,
        unplayed_s: Callable[[float], float] = lambda _now: 0.0,
        heard_hz: int = 16_000,
    ) -> None:
        self._session_id = session_id
        self._observation = observation
        self._metrics = observation.metrics
        self._audio_ms = audio_ms
        self._onset_ms = onset_ms
        self._log: Logger = get_logger("sessions").bind(session_id=session_id)
        self._ttfa = self._metrics.ttfa[model]
        self._unplayed_s = unplayed_s
        self._heard_hz = heard_hz
        self._output_buffer = self._metrics.output_buffer[model]
        self._barge_in_stop = self._metrics.barge_in_stop[model]
        self._recorder: FlightRecorder | None = None
        if observation.recorded_entries:
            self._recorder = FlightRecorder(
                observation.kinds,
                capacity=observation.recorded_entries,
                now=observation.clock.now(),
            )
        # What comes for every frame is looked at by whoever has it: before it is due, the sound is
        # only counted, and is told of with what comes when it is.
        self.heard_bytes = self.said_bytes = 0
        self.heard_due_at = math.inf if self._recorder is None else -math.inf
        self.said_due_at = -math.inf
        self.said_at = 0.0
        """When sound was last sent."""

        self._late_noted_at = -math.inf
        self._speech_began_at: float | None = None
        self._speech_ended_at: float | None = None
        self._awaiting_audio = False
        self._metrics.sessions_active.inc()
        self._log.info("session_opened", model=model)

    def applied(self, item: SessionInput, now: float) -> None:
        """The machine is about to take an input; audio, if ``heard_due_at`` has come."""
        recorder = self._recorder
        if recorder is None:
            return
        if isinstance(item, AppendAudio):
            recorder.record(AppendAudio, now, self.heard_bytes + len(item.audio))
            self.heard_due_at, self.heard_bytes = now + AUDIO_NOTE_S, 0
        elif isinstance(item, Output):
            payload = item.payload
            size = len(payload.pcm) if isinstance(payload, AudioChunk) else 0
            recorder.record(type(payload), now, size, 0, item.fence.epoch)
            if type(payload) is VoiceActivity and now >= self._late_noted_at + AUDIO_NOTE_S:
                self._late_noted_at = now
                late_ms = self._audio_ms() - samples_to_ms(payload.end_sample, self._heard_hz)
                self._metrics.detection_late.observe(max(0, late_ms) / 1000)
        else:
            recorder.record(type(item), now)

    def delivered(self, event: Event, now: float) -> None:
        """An event was handed to the connection; sound, if ``said_due_at`` has come."""
        if isinstance(event, AudioDelta):
            self.said_at = now
            self.said_bytes += len(event.delta)
            self._audio_delivered(now)
            return
        if self._recorder is not None:
            self._recorder.record(type(event), now)
        match event:
            case SpeechStarted():
                self._speech_began_at = self._moment(self._onset_ms(), now)
            case SpeechStopped(audio_end_ms=end_ms):
                self._speech_ended_at = self._moment(end_ms, now)
            case ResponseCreated():
                self._awaiting_audio = True
                self.said_due_at = -math.inf
            case ResponseDone(response=response):
                self._awaiting_audio = False
                details = response.status_details
                reason = details.reason if details is not None else None
                if response.status == "cancelled" and reason in STOPS:
                    self._metrics.epochs[reason].inc()
                if reason == TURN_DETECTED and self._speech_began_at is not None:
                    stopped_s = self.said_at - self._speech_began_at
                    self._barge_in_stop.observe(max(0.0, stopped_s))
                if response.status == "failed" and reason in STUCK_CODES:
                    self._stuck(response, reason)
                self._log.info(
                    "response_done",
                    response_id=response.id,
                    status=response.status,
                    reason=reason,
                )
            case _:
                pass

    def refused(self, request: Request, exc: DuologueError) -> None:
        """The engine did not take a request."""
        self._log.warning(
            "request_refused", pipeline=request.pipeline, code=exc.code, reason=exc.message
        )

    def listening_failed(self, part: str, code: str) -> None:
        """A part of what hears the person failed; the session goes on without it for a while."""
        self._metrics.listening_failed[part].inc()
        self._log.warning("listening_failed", part=part, code=code)

    def mailbox_full(self) -> None:
        """An input was refused."""
        self._metrics.mailbox_full["session"].inc()

    def crashed(self, exc: Exception) -> None:
        """A bug: the session closes, and its last seconds are kept."""
        self._log.error("session_crashed", exc_info=exc)
        if self._recorder is not None:
            wall_time = self._observation.clock.wall_time()
            entries = self._recorder.entries()
            reason = type(exc).__name__
            self._observation.keep(Flight(self._session_id, reason, wall_time, entries))

    def detached(self, change: int) -> None:
        """The session has lost its connection (1), or waits for another no longer (-1)."""
        self._metrics.sessions_detached.inc(change)
        if change > 0:
            self._log.info("session_detached")

    def closed(self, reason: str, stale_dropped: int) -> None:
        """The session is over."""
        self._metrics.sessions_active.inc(-1)
        self._metrics.session_closed[reason].inc()
        self._metrics.stale_output_dropped[STALE_AT_SESSION].inc(stale_dropped)
        self._log.info("session_closed", reason=reason)

    def _stuck(self, response: ResponseResource, reason: str) -> None:
        """An answer for which somebody has waited in vain."""
        what = "broken_off" if response.output else "unanswered"
        if reason == ErrorCode.RESPONSE_INAUDIBLE:
            what = "inaudible"
        self._metrics.responses_stuck[what].inc()
        self._log.warning("response_stuck", response_id=response.id, what=what, code=reason)

    def _audio_delivered(self, now: float) -> None:
        """Audio that is worth a note: the first of an answer, and some once a second."""
        if self._recorder is not None:
            self._recorder.record(AudioDelta, now, self.said_bytes)
        self._output_buffer.observe(self._unplayed_s(now))
        self.said_due_at, self.said_bytes = now + AUDIO_NOTE_S, 0
        if self._awaiting_audio:
            self._awaiting_audio = False
            if self._speech_ended_at is not None:
                self._ttfa.observe(max(0.0, now - self._speech_ended_at))
                self._speech_ended_at = None

    def _moment(self, audio_ms: int, now: float) -> float:
        """Return when the audio at this position came in, seen from ``now``."""
        return now - (self._audio_ms() - audio_ms) / 1000
