from __future__ import annotations

from duologue.clients.playback import Taken
from duologue.clients.timing import TurnTiming
from duologue.commands.demo.record import CallRecord, CallRecorder, TurnRecord, match_turns
from duologue.protocol.events import ItemTruncated
from duologue.protocol.response_resource import StatusDetails
from tests.fakes.server import FakeAnswer, speech_started
from tests.unit.commands.demo.scene import question


def test_what_is_played_begins_when_what_was_said_has_ended() -> None:
    recorder = CallRecorder(2)
    recorder.on_frame(b"\x01\x00" * 2, Taken(b"\x05\x00" * 2, (("a", 2),)))
    recorder.on_frame(b"\x02\x00" * 2, Taken(b"\x06\x00" * 2, (("a", 1), (None, 1))))
    record = recorder.record
    assert bytes(record.said) == b"\x01\x00" * 2 + b"\x02\x00" * 2
    assert bytes(record.played) == bytes(4) + b"\x05\x00" * 2 + b"\x06\x00" * 2
    assert record.played_of("a") == b"\x05\x00" * 2 + b"\x06\x00"
    assert record.played_samples("a") == 3
    assert record.span_of("a") == (2 / 24_000, 5 / 24_000)
    assert record.span_of("b") is None
    assert record.length_s == 4 / 24_000


def test_an_answer_is_followed_over_the_wire() -> None:
    recorder = CallRecorder(2)
    answer = FakeAnswer("a")
    for event in (
        answer.created(),
        answer.item_added(),
        answer.text("One two."),
        answer.audio(10),
        answer.text_done(),
        answer.done(),
    ):
        recorder.on_event(event)
    record = recorder.record.answers[answer.response_id]
    assert (record.item_id, record.status) == (answer.item_id, "completed")
    assert record.transcript == "One two."
    assert len(record.arrived) == 2 * 240
    assert (record.audio_after_interruption, record.audio_after_end) == (0, 0)


def test_old_audio_after_an_interruption_and_after_the_end_is_counted() -> None:
    recorder = CallRecorder(2)
    answer = FakeAnswer("a")
    for event in (
        answer.created(),
        answer.item_added(),
        answer.audio(10),
        speech_started("q"),
        answer.audio(10),
        ItemTruncated(item_id=answer.item_id, content_index=0, audio_end_ms=5),
        answer.done("cancelled"),
        answer.audio(10),
        ItemTruncated(item_id=answer.item_id, content_index=0, audio_end_ms=7),
        ItemTruncated(item_id="unknown", content_index=0, audio_end_ms=9),
    ):
        recorder.on_event(event)
    record = recorder.record.answers[answer.response_id]
    assert (record.audio_after_interruption, record.audio_after_end) == (2, 1)
    assert record.truncated_ms == [5, 7]


def test_why_the_latest_answer_failed_is_known() -> None:
    recorder = CallRecorder(2)
    assert recorder.record.failure() == ""
    answer = FakeAnswer("a")
    recorder.on_event(answer.created())
    assert recorder.record.failure() == ""
    done = answer.done("failed")
    failed = type(done.response)(
        id=answer.response_id,
        status="failed",
        status_details=StatusDetails(type="failed", reason="stage_timeout"),
        output_modalities=("audio",),
        audio=done.response.audio,
    )
    recorder.on_event(type(done)(response=failed))
    assert recorder.record.failure() == "stage_timeout"


def test_a_question_has_the_answer_to_the_turn_that_it_became() -> None:
    record = CallRecord(started_at=100.0)
    turns = [TurnRecord(question(0), 1.0), TurnRecord(question(1), 5.0)]
    recorder = CallRecorder(2)
    answers = [FakeAnswer(name) for name in "abc"]
    for answer in answers:
        recorder.on_event(answer.created())
    record.answers = recorder.record.answers
    timings = [
        TurnTiming("t0", speech_from=100.8, response_id="resp_a"),
        TurnTiming("t1", speech_from=104.9),
        TurnTiming("t2", speech_from=106.0, response_id="resp_b"),
        TurnTiming("t3"),
    ]
    match_turns(turns, timings, record)
    assert turns[0].answer is record.answers["resp_a"]
    assert turns[1].answer is record.answers["resp_b"]
    assert turns[1].timing is timings[2]


def test_a_question_that_nobody_answered_has_none() -> None:
    record = CallRecord(started_at=100.0)
    turns = [TurnRecord(question(0), 1.0)]
    match_turns(turns, [TurnTiming("t", speech_from=101.0)], record)
    assert turns[0].timing is not None
    assert turns[0].answer is None
    assert record.time_of(None) is None
