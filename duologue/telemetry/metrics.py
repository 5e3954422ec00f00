"""All figures that Duologue publishes, in one object that ``app`` makes and hands down.

Names are ``duologue_<part>_<what>_<unit>``. Labels come from closed sets and are never ids. This
module must not know who writes the figures, nor how they are exported.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from duologue.telemetry.instruments import Counter, Family, Gauge, Grid, Histogram, Instrument

EAR_EDGES_S = tuple(0.020 * 2**step for step in range(8))
"""20 ms to 2,560 ms, doubling: below the first nobody hears a delay, past the last they hang up."""

LAG_EDGES_S = tuple(0.001 * 2**step for step in range(9))
"""1 ms to 256 ms: the loop is in trouble long before an ear notices."""

LISTENING_PARTS = ("detector", "end_of_turn", "transcriber")
"""What hears the person, and can fail by itself."""

STOPS = ("turn_detected", "client_cancelled")
"""Why an answer is stopped while the call goes on."""

QUEUE_OUTCOMES = ("admitted", "gave_up", "timed_out", "refused")
"""What became of a call that waited: it began, its client left, or it was refused after all."""

WORK_CLASSES = ("realtime", "interactive", "batch")
"""What lateness costs, as the engine has it."""

ROBOT_OUTCOMES = ("answered", "stale", "late", "failed", "refused")
"""What became of an observation of a robot."""

HANDSHAKES = ("begun", "done", "refused")
"""How far TLS handshakes came. What began and did neither was left, or took too long."""

STUCK = ("unanswered", "broken_off", "inaudible")
"""How an answer is stuck: nothing came of it, nothing more came, or its text without its sound."""

STAGE_TRANSITIONS = tuple(
    f"{name}{suffix}" for name in ("sleep", "wake", "pause", "resume") for suffix in ("", "_failed")
)
"""What was ordered of a stage, and whether it came about."""

HTTP_STATUSES = ("1xx", "2xx", "3xx", "4xx", "5xx")
"""Classes, since each status would be a series for each route."""

RESUME_OUTCOMES = (
    "resumed",
    "taken_over",
    "invalid_session_resume",
    "invalid_resume_token",
    "session_resume_expired",
    "session_resume_conflict",
    "unsupported_session_resume",
    "api_key_not_allowed",
)
"""What became of attempts to resume a session: it waited, was still attached, or why it failed."""


FRAME_KINDS = (
    "frames",
    "silent_frames",
    "silence_samples",
    "dropped_samples",
    "squeezed_samples",
    "stretched_samples",
    "debt_frames",
    "late_frames",
    "late_in_debt",
    "skipped_ticks",
    "skipped_samples",
    "moves",
    "shortened_windows",
)
"""What happens to frames of streams that are stepped at a beat."""

BYTE_BOUNDS = (
    "output_buffer",
    "journal",
    "input_audio",
    "input_backlog",
    "conversation",
    "camera_frames",
    "past_conversations",
    "stage_input",
    "stage_slab",
    "recordings",
    "devices",
)
"""Bounds that are counted in bytes, and so add up to memory."""

BOUNDS = (
    *BYTE_BOUNDS,
    "output_speech",
    "output_events",
    "input_backlog_messages",
    "mailbox",
    "conversation_items",
    "responses_beside",
    "sessions",
    "call_queue",
    "stage_slots",
    "stage_queue",
    "http_requests",
)
"""Everything that holds something for somebody, and may hold no more than a number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelSets:
    """Every value that a label can take; known once plugins and pipelines are."""

    plugins: tuple[str, ...] = ()
    transports: tuple[str, ...] = ()
    dialects: tuple[str, ...] = ()
    stages: tuple[str, ...] = ()
    beats: tuple[str, ...] = ()
    """Workers that may keep a beat of their own."""
    pipelines: tuple[str, ...] = ()
    close_reasons: tuple[str, ...] = ()
    mailboxes: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    """Names of API keys; never the keys."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One published name with all its members.

    Args:
        labels: Names of its labels, at most two.
        members: By the value of its label; by both for two, and under "" for none.
    """

    name: str
    help: str
    labels: tuple[str, ...]
    members: Iterable[tuple[str | tuple[str, str], Instrument]]


class Metrics:
    """The figures of one process.

    A session takes its members once, ``ttfa = metrics.ttfa["cascaded"]``, and writes to those.
    """

    def __init__(self, labels: LabelSets) -> None:
        self._figures: list[Figure] = []
        self.sessions_active = Gauge()
        self._publish("duologue_sessions_active", "Sessions that are open.", self.sessions_active)
        self.calls_active: Grid[Gauge] = Grid(Gauge, labels.transports, labels.dialects)
        self._figures.append(
            Figure(
                "duologue_calls_active",
                "Sessions that are open, by how their client came in.",
                ("transport", "dialect"),
                self.calls_active,
            )
        )
        self.session_closed = self._counters(
            "duologue_session_closed_total",
            "Sessions that ended.",
            "reason",
            labels.close_reasons,
        )
        self.sessions_reaped = Counter()
        self._publish(
            "duologue_sessions_reaped_total",
            "Sessions whose end had failed, and that were ended at last.",
            self.sessions_reaped,
        )
        self.sessions_detached = Gauge()
        self._publish(
            "duologue_sessions_detached",
            "Sessions that have lost their connection and wait for another.",
            self.sessions_detached,
        )
        self.resumes = self._counters(
            "duologue_session_resumes_total",
            "Attempts to go on with a session on another connection.",
            "outcome",
            RESUME_OUTCOMES,
        )
        self.journal_bytes = Gauge()
        self._publish(
            "duologue_journal_bytes",
            "What is kept of what clients were sent until they acknowledge it.",
            self.journal_bytes,
        )
        self.held_bytes = self._gauges(
            "duologue_held_bytes",
            "Bytes that are held behind each bound, for all sessions, stages or calls together.",
            "bound",
            BYTE_BOUNDS,
        )
        self.bound_fill = self._gauges(
            "duologue_bound_fill_ratio",
            "How full the fullest holder behind each bound is; 1 is the limit.",
            "bound",
            BOUNDS,
        )
        self.tls_handshakes = self._counters(
            "duologue_tls_handshakes_total",
            "TLS handshakes of clients: those that began, were done, or failed for what was said.",
            "outcome",
            HANDSHAKES,
        )
        self.loop_tasks = Gauge()
        self._publish("duologue_loop_tasks", "Tasks of the event loop.", self.loop_tasks)
        self.calls_queued = self._counters(
            "duologue_calls_queued_total",
            "Calls that waited for a place.",
            "outcome",
            QUEUE_OUTCOMES,
        )
        self.class_active = self._gauges(
            "duologue_class_requests_active",
            "Plain requests and jobs that are worked on, by class of work.",
            "class",
            WORK_CLASSES,
        )
        self.class_waiting = self._gauges(
            "duologue_class_requests_waiting",
            "Plain requests and jobs that wait for a slot of their class.",
            "class",
            WORK_CLASSES,
        )
        self.class_refused = self._counters(
            "duologue_class_requests_refused_total",
            "Plain requests that were refused for want of a slot, or by the limit of their key.",
            "class",
            WORK_CLASSES,
        )
        self.class_wait = self._durations(
            "duologue_class_wait_seconds",
            "How long a plain request or a job waited for its slot.",
            "class",
            WORK_CLASSES,
        )
        self.robot_observations = self._counters(
            "duologue_robot_observations_total",
            "Observations of robots.",
            "outcome",
            ROBOT_OUTCOMES,
        )
        self.key_sessions = self._gauges(
            "duologue_key_sessions_active",
            "Sessions that are open with an API key and its client secrets.",
            "key",
            labels.keys,
        )
        self.key_requests = self._counters(
            "duologue_key_requests_total",
            "Requests with an API key or its client secrets.",
            "key",
            labels.keys,
        )
        self.key_refused = self._counters(
            "duologue_key_refused_total",
            "Requests and sessions refused because the limit of the API key was reached.",
            "key",
            labels.keys,
        )
        self.ttfa = self._durations(
            "duologue_ttfa_seconds",
            "From the end of the person's speech to the first byte of the answer's audio written.",
            "plugin",
            labels.plugins,
        )
        self.speech_first_packet = self._durations(
            "duologue_speech_first_packet_seconds",
            "From a text, or its first words, to the first speech handed to the connection.",
            "pipeline",
            labels.pipelines,
        )
        self.speech_first_audible = self._durations(
            "duologue_speech_first_audible_seconds",
            "The same to the first sample louder than silence, as a client hears it.",
            "pipeline",
            labels.pipelines,
        )
        self.barge_in_stop = self._durations(
            "duologue_barge_in_stop_seconds",
            "From the start of an interruption to the last byte of the old answer written.",
            "plugin",
            labels.plugins,
        )
        self.stale_output_dropped = self._counters(
            "duologue_stale_output_dropped_total",
            "Outputs that came after their response was interrupted.",
            "stage",
            labels.stages,
        )
        self.epochs = self._counters(
            "duologue_epochs_total",
            "Answers that were stopped while the call goes on: each begins an epoch.",
            "reason",
            STOPS,
        )
        self.responses_stuck = self._counters(
            "duologue_responses_stuck_total",
            "Answers that failed because nothing of them came or sounded in time.",
            "what",
            STUCK,
        )
        self.stage_cancel = self._durations(
            "duologue_stage_cancel_seconds",
            "From the cancel of a request until the stage has let go of it.",
            "stage",
            labels.stages,
        )
        self.detection_late = Histogram(EAR_EDGES_S)
        self._publish(
            "duologue_detection_late_seconds",
            "How far the detector is behind the audio that came in, once a second.",
            self.detection_late,
        )
        self.stage_queue = self._durations(
            "duologue_stage_queue_seconds",
            "From a request's submission until it has a slot of the stage.",
            "stage",
            labels.stages,
        )
        self.stage_step = self._durations(
            "duologue_stage_step_seconds", "One step of a stage.", "stage", labels.stages
        )
        self.frame_deadline_missed = self._counters(
            "duologue_frame_deadline_missed_total",
            "Steps that took longer than the audio that they dealt with.",
            "stage",
            labels.stages,
        )
        self.lockstep: Grid[Counter] = Grid(Counter, labels.beats, FRAME_KINDS)
        self._figures.append(
            Figure(
                "duologue_lockstep_total",
                "Frames and samples of models that hear and speak at every tick.",
                ("worker", "what"),
                self.lockstep,
            )
        )
        self.stage_refused = self._counters(
            "duologue_stage_refused_total",
            "Requests refused because all slots of the stage and its queue were taken.",
            "stage",
            labels.stages,
        )
        self.stage_failed = self._counters(
            "duologue_stage_failed_total",
            "Requests that failed at the stage.",
            "stage",
            labels.stages,
        )
        self.worker_lost = self._counters(
            "duologue_worker_lost_total",
            "Workers that died, hung or could not be started.",
            "stage",
            labels.stages,
        )
        self.stage_asleep = self._gauges(
            "duologue_stage_asleep",
            "The level at which all workers of the stage sleep; 0: some are awake.",
            "stage",
            labels.stages,
        )
        self.stage_paused = self._gauges(
            "duologue_stage_paused",
            "1 while the stage begins no work.",
            "stage",
            labels.stages,
        )
        self.stage_freed = self._gauges(
            "duologue_stage_freed_bytes",
            "Memory of host and devices that was free after the stage last went to sleep.",
            "stage",
            labels.stages,
        )
        self.stage_transitions: Grid[Counter] = Grid(Counter, labels.stages, STAGE_TRANSITIONS)
        self._figures.append(
            Figure(
                "duologue_stage_transitions_total",
                "Stages that went to sleep, woke, were paused or resumed, or failed to.",
                ("stage", "transition"),
                self.stage_transitions,
            )
        )
        self.listening_failed = self._counters(
            "duologue_listening_failed_total",
            "Sessions that lost a detector, recogniser or end-of-turn model in the middle.",
            "part",
            LISTENING_PARTS,
        )
        self.output_buffer = self._durations(
            "duologue_output_buffer_seconds",
            "Audio made and not yet played, once a second of an answer: low, and speech has gaps;"
            " high, and interruptions come late.",
            "plugin",
            labels.plugins,
        )
        self.mailbox_full = self._counters(
            "duologue_mailbox_full_total",
            "Inputs refused because their mailbox was full.",
            "mailbox",
            labels.mailboxes,
        )
        self.loop_lag = Histogram(LAG_EDGES_S)
        self._publish(
            "duologue_loop_lag_seconds", "How late the event loop ran a timer.", self.loop_lag
        )

    def __iter__(self) -> Iterator[Figure]:
        return iter(self._figures)

    def count_http(self, routes: Iterable[str]) -> Grid[Counter]:
        """Publish requests by route, once the routes are known."""
        requests = Grid(Counter, routes, HTTP_STATUSES)
        self._figures.append(
            Figure(
                "duologue_http_requests_total",
                "HTTP requests that were answered, with the upgrades to WebSocket.",
                ("route", "status"),
                requests,
            )
        )
        return requests

    def _publish(self, name: str, text: str, instrument: Instrument) -> None:
        self._figures.append(Figure(name, text, (), (("", instrument),)))

    def _counters(
        self, name: str, text: str, label: str, values: tuple[str, ...]
    ) -> Family[Counter]:
        family = Family(Counter, values)
        self._figures.append(Figure(name, text, (label,), family))
        return family

    def _gauges(self, name: str, text: str, label: str, values: tuple[str, ...]) -> Family[Gauge]:
        family = Family(Gauge, values)
        self._figures.append(Figure(name, text, (label,), family))
        return family

    def _durations(
        self, name: str, text: str, label: str, values: tuple[str, ...]
    ) -> Family[Histogram]:
        family = Family(lambda: Histogram(EAR_EDGES_S), values)
        self._figures.append(Figure(name, text, (label,), family))
        return family
