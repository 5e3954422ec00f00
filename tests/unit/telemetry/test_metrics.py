from __future__ import annotations

import re

from duologue.telemetry import Counter, Histogram, LabelSets, Metrics
from duologue.telemetry.instruments import Instrument
from duologue.telemetry.metrics import EAR_EDGES_S

LABELS = LabelSets(
    plugins=("cascaded",), stages=("asr", "tts"), close_reasons=("client",), mailboxes=("session",)
)


def test_names_and_labels_are_the_published_ones() -> None:
    assert {figure.name: ",".join(figure.labels) for figure in Metrics(LABELS)} == {
        "duologue_sessions_active": "",
        "duologue_calls_active": "transport,dialect",
        "duologue_session_closed_total": "reason",
        "duologue_sessions_reaped_total": "",
        "duologue_sessions_detached": "",
        "duologue_session_resumes_total": "outcome",
        "duologue_journal_bytes": "",
        "duologue_held_bytes": "bound",
        "duologue_bound_fill_ratio": "bound",
        "duologue_loop_tasks": "",
        "duologue_calls_queued_total": "outcome",
        "duologue_class_requests_active": "class",
        "duologue_class_requests_waiting": "class",
        "duologue_class_requests_refused_total": "class",
        "duologue_class_wait_seconds": "class",
        "duologue_tls_handshakes_total": "outcome",
        "duologue_robot_observations_total": "outcome",
        "duologue_key_sessions_active": "key",
        "duologue_key_requests_total": "key",
        "duologue_key_refused_total": "key",
        "duologue_ttfa_seconds": "plugin",
        "duologue_speech_first_packet_seconds": "pipeline",
        "duologue_speech_first_audible_seconds": "pipeline",
        "duologue_barge_in_stop_seconds": "plugin",
        "duologue_stale_output_dropped_total": "stage",
        "duologue_epochs_total": "reason",
        "duologue_responses_stuck_total": "what",
        "duologue_stage_cancel_seconds": "stage",
        "duologue_detection_late_seconds": "",
        "duologue_stage_queue_seconds": "stage",
        "duologue_stage_step_seconds": "stage",
        "duologue_frame_deadline_missed_total": "stage",
        "duologue_lockstep_total": "worker,what",
        "duologue_stage_refused_total": "stage",
        "duologue_stage_failed_total": "stage",
        "duologue_worker_lost_total": "stage",
        "duologue_stage_asleep": "stage",
        "duologue_stage_paused": "stage",
        "duologue_stage_freed_bytes": "stage",
        "duologue_stage_transitions_total": "stage,transition",
        "duologue_listening_failed_total": "part",
        "duologue_output_buffer_seconds": "plugin",
        "duologue_mailbox_full_total": "mailbox",
        "duologue_loop_lag_seconds": "",
    }


def test_every_name_says_its_unit_and_every_figure_its_meaning() -> None:
    for figure in Metrics(LABELS):
        assert re.fullmatch(r"duologue_[a-z_]+", figure.name)
        assert figure.help.endswith(".")
        instruments: list[Instrument] = [member for _, member in figure.members]
        if isinstance(instruments[0], Counter):
            assert figure.name.endswith("_total")
        if isinstance(instruments[0], Histogram):
            assert figure.name.endswith("_seconds")


def test_histogram_edges_follow_ears() -> None:
    assert [round(edge * 1000) for edge in EAR_EDGES_S] == [20, 40, 80, 160, 320, 640, 1280, 2560]


def test_two_processes_worth_of_metrics_share_nothing() -> None:
    one, two = Metrics(LABELS), Metrics(LABELS)
    one.ttfa["cascaded"].observe(0.2)
    one.sessions_active.inc()
    assert sum(two.ttfa["cascaded"].counts) == 0
    assert two.sessions_active.value == 0
