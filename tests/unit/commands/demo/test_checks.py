from __future__ import annotations

from collections.abc import Callable

import pytest

from duologue.commands.demo.checks import Check, judge
from duologue.commands.demo.record import AnswerRecord, CallRecord
from tests.unit.commands.demo.scene import HEARD_MS, STARTED_AT, good_call


def failed(record: CallRecord) -> list[Check]:
    return [check for check in judge(record) if not check.passed]


def test_a_good_call_passes_every_check() -> None:
    checks = judge(good_call())
    assert [check for check in checks if not check.passed] == []
    assert len(checks) == 9


def unintelligible(record: CallRecord) -> None:
    record.answers["r0"].transcribed = "The cattle of trance is Paris"


def silent(record: CallRecord) -> None:
    record.answers["r0"].transcript = record.answers["r0"].transcribed = ""


def off_the_question(record: CallRecord) -> None:
    answer = record.answers["r2"]
    answer.transcript = answer.transcribed = "I do not know that."


def not_answered(record: CallRecord) -> None:
    record.turns[0].answer = None


def broken_off(record: CallRecord) -> None:
    record.answers["r2"].status = "failed"


def heard_to_its_end(record: CallRecord) -> None:
    record.answers["r1"].truncated_ms = []


def never_heard(record: CallRecord) -> None:
    record.runs = [run for run in record.runs if run.item_id != "a1"]


def no_answer_to_interrupt(record: CallRecord) -> None:
    record.turns[1].answer = None


def old_audio_after_the_interruption(record: CallRecord) -> None:
    record.answers["r1"].audio_after_interruption = 1


def old_audio_after_the_end(record: CallRecord) -> None:
    record.answers["r1"].audio_after_end = 2


def went_on_playing(record: CallRecord) -> None:
    timing = record.turns[2].timing
    assert timing is not None
    timing.confirmed_at = STARTED_AT + 7.95


def never_confirmed(record: CallRecord) -> None:
    timing = record.turns[2].timing
    assert timing is not None
    timing.confirmed_at = None


def server_knows_another_cut(record: CallRecord) -> None:
    record.answers["r1"].truncated_ms.append(HEARD_MS - 20)


def history_holds_too_much(record: CallRecord) -> None:
    record.answers["r1"].history = "You could cook pasta with tomato"


def history_holds_too_little(record: CallRecord) -> None:
    record.answers["r1"].history = "You could"


def history_holds_other_words(record: CallRecord) -> None:
    record.answers["r1"].history = "You should cook pasta"


@pytest.mark.parametrize(
    ("spoil", "what", "saw"),
    [
        (unintelligible, "answer 1 can be understood", "2 of 6 words wrong (limit 1)"),
        (silent, "answer 1 can be understood", "0 of 0 words"),
        (off_the_question, "answer 3 answers the question", "without seven"),
        (not_answered, "question 1 is answered", "there is none"),
        (broken_off, "question 3 is answered", "it is failed"),
        (heard_to_its_end, "the second answer is interrupted", "heard to its end (1.0 s"),
        (never_heard, "the second answer is interrupted", "nothing of the answer was heard"),
        (no_answer_to_interrupt, "the second answer is interrupted", "no answer to interrupt"),
        (
            old_audio_after_the_interruption,
            "no old audio is sent after the interruption",
            "1 audio deltas after the event",
        ),
        (
            old_audio_after_the_end,
            "no old audio is sent after the interruption",
            "2 after the end of the response",
        ),
        (went_on_playing, "playback stops at once", "+90 ms"),
        (never_confirmed, "playback stops at once", "never confirmed"),
        (
            server_knows_another_cut,
            "the server knows how much was heard",
            "1000 ms were played, the server says 980 ms",
        ),
        (
            history_holds_too_much,
            "the history holds exactly the heard words",
            "6 of 9 words",
        ),
        (
            history_holds_too_little,
            "the history holds exactly the heard words",
            "2 of 9 words",
        ),
        (
            history_holds_other_words,
            "the history holds exactly the heard words",
            "is not the beginning",
        ),
    ],
)
def test_what_goes_wrong_fails_its_check_and_says_what_was_seen(
    spoil: Callable[[CallRecord], None], what: str, saw: str
) -> None:
    record = good_call()
    spoil(record)
    checks = {check.what: check for check in failed(record)}
    assert what in checks
    assert saw in checks[what].saw


def test_one_word_either_way_at_the_cut_is_no_fault() -> None:
    record = good_call()
    for history in ("You could cook", "You could cook pasta with"):
        record.answers["r1"].history = history
        assert failed(record) == []


def test_one_wrong_word_in_a_short_answer_is_no_fault_and_two_are() -> None:
    record = good_call()
    record.answers["r0"].transcribed = "The capital of trance is Paris"
    assert failed(record) == []
    record.answers["r0"].transcribed = "The capital of trance was Paris"
    assert len(failed(record)) == 1


def test_a_call_that_ended_before_the_interruption_was_not_interrupted() -> None:
    record = good_call()
    del record.turns[2]
    assert [check.what for check in failed(record)] == ["the second answer is interrupted"]


def test_an_answer_record_begins_empty() -> None:
    assert AnswerRecord("r").truncated_ms is not AnswerRecord("r").truncated_ms
