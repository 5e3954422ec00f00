"""What is noted about a session while it runs."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from duologue.core.errors import CapacityError
from duologue.core.fence import SESSION_LANE, Fence
from duologue.engines.payloads import AudioChunk, TextDelta, VoiceActivity
from duologue.engines.ports import Ended, Outcome, Output, Request
from duologue.protocol.append_audio import AppendAudio
from duologue.protocol.audio_formats import PcmFormat
from duologue.protocol.commands import CommitAudio
from duologue.protocol.events import AudioCleared, SpeechStarted, SpeechStopped
from duologue.protocol.response_events import (
    AudioDelta,
    FormattedAudioDelta,
    ResponseCreated,
    ResponseDone,
)
from duologue.protocol.response_resource import (
    CLIENT_CANCELLED,
    TURN_DETECTED,
    ResponseAudioOutputResource,
    ResponseAudioResource,
    ResponseResource,
    ResponseStatus,
    StatusDetails,
)
from duologue.sessions.manager import recorded_kinds
from duologue.sessions.watching.observer import STALE_AT_SESSION, Observation, SessionObserver
from duologue.telemetry import Direction, Flight, LabelSets, Metrics
from duologue.telemetry.metrics import STOPS
from tests.fakes.clock import WALL_START_S, FakeClock

FENCE = Fence("s", SESSION_LANE, 3)
AUDIO = AudioDelta(
    response_id="r", item_id="i", output_index=0, content_index=0, delta=b"\x00" * 480
)


class Bench:
    def __init__(self, recorded_entries: int = 16) -> None:
        self.clock = FakeClock(100.0)
        self.audio_ms = 0
        self.onset_ms = 0
        self.kept: list[Flight] = []
        self.metrics = Metrics(
            LabelSets(
                plugins=("echo",),
                stages=(STALE_AT_SESSION,),
                close_reasons=("closed",),
                mailboxes=("session",),
            )
        )
        self.observation = Observation(
            metrics=self.metrics,
            kinds=recorded_kinds(),
            clock=self.clock,
            recorded_entries=recorded_entries,
            keep=self.kept.append,
        )
        self.observer = SessionObserver(
            "s", "echo", self.observation, lambda: self.audio_ms, lambda: self.onset_ms
        )

    def recorded(self) -> list[tuple[Direction, str, int]]:
        """What a crash would keep."""
        self.observer.crashed(ValueError("x"))
        return [(entry.direction, entry.kind, entry.size_bytes) for entry in self.kept[-1].entries]


def resource(status: ResponseStatus, reason: str | None = None) -> ResponseResource:
    details = None if reason is None else StatusDetails(type="cancelled", reason=reason)
    audio = ResponseAudioResource(
        output=ResponseAudioOutputResource(format=PcmFormat(), voice="alloy")
    )
    return ResponseResource(
        id="r",
        status=status,
        status_details=details,
        output=(),
        conversation_id=None,
        output_modalities=("audio",),
        audio=audio,
        max_output_tokens="inf",
        metadata=None,
        usage=None,
    )


def test_open_sessions_are_counted_and_so_is_why_they_end() -> None:
    bench = Bench()
    assert bench.metrics.sessions_active.value == 1
    with capture_logs() as logs:
        bench.observer.closed("closed", stale_dropped=3)
    assert bench.metrics.sessions_active.value == 0
    assert bench.metrics.session_closed["closed"].value == 1
    assert bench.metrics.stale_output_dropped[STALE_AT_SESSION].value == 3
    assert [(log["event"], log["reason"]) for log in logs] == [("session_closed", "closed")]


def test_the_recorder_keeps_kinds_and_sizes_but_no_content() -> None:
    bench = Bench()
    inputs = (
        AppendAudio(audio=b"\x00" * 960),
        CommitAudio(),
        Output("s.1", FENCE, AudioChunk(b"\x00" * 640, 16000)),
        Output("s.1", FENCE, TextDelta("secret")),
        Ended("s.1", FENCE, Outcome.COMPLETED),
    )
    for item in inputs:
        bench.observer.applied(item, 100.0)
    bench.observer.delivered(AUDIO, 100.0)
    bench.observer.delivered(AudioCleared(), 100.0)
    assert bench.recorded() == [
        (Direction.INPUT, "AppendAudio", 960),
        (Direction.INPUT, "CommitAudio", 0),
        (Direction.INPUT, "AudioChunk", 640),
        (Direction.INPUT, "TextDelta", 0),
        (Direction.INPUT, "Ended", 0),
        (Direction.EFFECT, "AudioDelta", 480),
        (Direction.EFFECT, "AudioCleared", 0),
    ]
    assert "secret" not in repr(bench.kept)


def test_a_crash_is_logged_and_its_last_seconds_are_kept() -> None:
    bench = Bench()
    with capture_logs() as logs:
        bench.observer.crashed(ValueError("broken"))
    assert logs[0]["event"] == "session_crashed"
    (flight,) = bench.kept
    assert (flight.session_id, flight.reason) == ("s", "ValueError")
    assert flight.ended_at == WALL_START_S


def test_without_a_recorder_nothing_is_kept() -> None:
    bench = Bench(recorded_entries=0)
    bench.observer.applied(CommitAudio(), 100.0)
    bench.observer.delivered(AudioCleared(), 100.0)
    bench.observer.delivered(AUDIO, 100.0)
    bench.observer.crashed(ValueError("broken"))
    assert bench.kept == []


def test_the_wait_for_an_answer_is_measured_from_the_end_of_speech() -> None:
    bench = Bench()
    bench.audio_ms = 2500
    bench.observer.delivered(SpeechStopped(audio_end_ms=2000, item_id="i"), 100.0)
    bench.observer.delivered(ResponseCreated(response=resource("in_progress")), 100.1)
    bench.observer.delivered(AUDIO, 100.3)
    bench.observer.delivered(AUDIO, 100.5)
    ttfa = bench.metrics.ttfa["echo"]
    assert sum(ttfa.counts) == 1
    assert ttfa.sum == pytest.approx(0.8)


def test_an_answer_that_nobody_waited_for_has_no_wait() -> None:
    bench = Bench()
    bench.observer.delivered(ResponseCreated(response=resource("in_progress")), 100.1)
    bench.observer.delivered(AUDIO, 100.3)
    bench.observer.delivered(ResponseDone(response=resource("completed")), 100.4)
    bench.observer.delivered(SpeechStopped(audio_end_ms=0, item_id="i"), 100.5)
    bench.observer.delivered(AUDIO, 100.6)
    assert sum(bench.metrics.ttfa["echo"].counts) == 0


def test_how_fast_an_interruption_works_is_measured_from_the_start_of_speech() -> None:
    bench = Bench()
    bench.observer.delivered(AUDIO, 100.2)
    bench.audio_ms, bench.onset_ms = 5000, 4900
    # 300 ms of padding are kept from before the speech: they are no part of the measure.
    bench.observer.delivered(SpeechStarted(audio_start_ms=4600, item_id="i"), 100.2)
    bench.observer.delivered(ResponseDone(response=resource("cancelled", "turn_detected")), 100.2)
    stop = bench.metrics.barge_in_stop["echo"]
    assert sum(stop.counts) == 1
    assert stop.sum == pytest.approx(0.1)


@pytest.mark.parametrize("reason", [None, "client_cancelled"])
def test_other_ends_are_no_interruptions(reason: str | None) -> None:
    bench = Bench()
    bench.observer.delivered(SpeechStarted(audio_start_ms=0, item_id="i"), 100.2)
    with capture_logs() as logs:
        bench.observer.delivered(ResponseDone(response=resource("cancelled", reason)), 100.3)
    assert sum(bench.metrics.barge_in_stop["echo"].counts) == 0
    assert (logs[0]["event"], logs[0]["reason"]) == ("response_done", reason)


def test_an_interruption_that_nobody_heard_begin_is_not_measured() -> None:
    bench = Bench()
    bench.observer.delivered(ResponseDone(response=resource("cancelled", "turn_detected")), 100.2)
    assert sum(bench.metrics.barge_in_stop["echo"].counts) == 0


def test_a_detector_that_fails_is_counted_and_logged_without_a_word_to_the_client() -> None:
    bench = Bench()
    with capture_logs() as logs:
        bench.observer.listening_failed("detector", "replica_lost")
    assert logs == [
        {
            "event": "listening_failed",
            "log_level": "warning",
            "session_id": "s",
            "part": "detector",
            "code": "replica_lost",
        }
    ]
    assert bench.metrics.listening_failed["detector"].value == 1


def test_refusals_are_noted() -> None:
    bench = Bench()
    with capture_logs() as logs:
        bench.observer.refused(
            Request("s.1", "asr", FENCE), CapacityError("full", retry_after_s=1.0)
        )
        bench.observer.mailbox_full()
    assert [logs[0][name] for name in ("pipeline", "code", "reason")] == [
        "asr",
        "server_full",
        "full",
    ]
    assert bench.metrics.mailbox_full["session"].value == 1


def test_the_figure_knows_both_reasons_for_which_an_answer_is_cancelled() -> None:
    assert set(STOPS) == {TURN_DETECTED, CLIENT_CANCELLED}


@pytest.mark.parametrize(
    ("status", "reason", "counted"),
    [
        ("cancelled", "turn_detected", 1),
        ("cancelled", "client_cancelled", 1),
        ("cancelled", "client_gone", 0),
        ("completed", None, 0),
    ],
)
def test_answers_that_were_stopped_in_a_call_that_goes_on_are_epochs(
    status: ResponseStatus, reason: str | None, counted: int
) -> None:
    bench = Bench()
    bench.observer.delivered(ResponseDone(response=resource(status, reason)), 100.3)
    assert sum(counter.value for _, counter in bench.metrics.epochs) == counted


def test_what_waits_and_how_late_the_detector_is_are_noted_once_a_second() -> None:
    bench = Bench()
    bench.audio_ms = 500
    observer = SessionObserver(
        "s", "echo", bench.observation, lambda: 500, lambda: 0, lambda _now: 0.25
    )
    for tenth in range(25):
        now = 100 + tenth / 10
        observer.applied(Output("s.1", FENCE, VoiceActivity(0.5, 16 * 440)), now)
        if now >= observer.said_due_at:
            observer.delivered(AUDIO, now)
    assert sum(bench.metrics.detection_late.counts) == 3
    assert bench.metrics.detection_late.sum == pytest.approx(3 * 0.06)
    assert bench.metrics.output_buffer["echo"].sum == pytest.approx(3 * 0.25)


def test_the_wait_for_an_answer_is_measured_in_the_duplex_dialect_too() -> None:
    bench = Bench()
    bench.audio_ms = 2500
    bench.observer.delivered(SpeechStopped(audio_end_ms=2000, item_id="i"), 100.0)
    bench.observer.delivered(ResponseCreated(response=resource("in_progress")), 100.1)
    sound = FormattedAudioDelta(
        response_id="r",
        item_id="i",
        output_index=0,
        content_index=0,
        delta=b"\x00" * 480,
        format="pcm16",
        sample_rate_hz=24_000,
    )
    bench.observer.delivered(sound, 100.3)
    assert bench.metrics.ttfa["echo"].sum == pytest.approx(0.8)
    assert (Direction.EFFECT, "AudioDelta", 480) in bench.recorded()
