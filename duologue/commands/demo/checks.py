"""Was the call a good one? Pure functions from what happened to verdicts that can be read.

This module must not know how a call is held.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from duologue.commands.demo.record import AnswerRecord, CallRecord, TurnRecord
from duologue.commands.demo.words import likely_prefixes, spoken_words, word_errors

MAX_WORD_ERROR_RATE = 0.2
"""Of the answer's words: what a recogniser may get wrong in clear speech, and a little more."""

MAX_STOP_S = 0.06
"""From the news of the interruption to the last old sample: three frames of 20 ms."""

MAX_HISTORY_WORDS_OFF = 1
"""The word in the middle of which an answer was cut may count either way."""

INTERRUPTED_TURN = 1
"""The answer to the second question is the one that is interrupted."""


@dataclass(frozen=True, slots=True)
class Check:
    """One verdict.

    Args:
        what: What should be so.
        passed: Whether it is.
        saw: What was seen; shown where the check failed, and for the curious.
    """

    what: str
    passed: bool
    saw: str


def judge(record: CallRecord) -> list[Check]:
    """Return all verdicts about a call."""
    checks: list[Check] = []
    for number, turn in enumerate(record.turns):
        if number == INTERRUPTED_TURN:
            checks += check_interruption(record)
        else:
            checks += check_answer(turn, number + 1)
    return checks


def check_answer(turn: TurnRecord, number: int) -> Iterator[Check]:
    """Judge an answer that was heard to its end: can one understand it, and does it answer?"""
    answer = turn.answer
    if answer is None or answer.status != "completed":
        state = "there is none" if answer is None else f"it is {answer.status or 'not done'}"
        yield Check(f"question {number} is answered", False, state)
        return
    wanted, got = spoken_words(answer.transcript), spoken_words(answer.transcribed)
    errors = word_errors(wanted, got)
    allowed = max(1, int(MAX_WORD_ERROR_RATE * len(wanted)))
    yield Check(
        f"answer {number} can be understood",
        bool(wanted) and errors <= allowed,
        f"{errors} of {len(wanted)} words wrong (limit {allowed}): it said "
        f"“{answer.transcript}”, a recogniser heard “{answer.transcribed}”",
    )
    missing = turn.question.missing(answer.transcribed)
    yield Check(
        f"answer {number} answers the question",
        not missing,
        f"“{turn.question.text}” was answered with “{answer.transcribed}”"
        + (f", without {'; '.join(missing)}" if missing else ""),
    )


def check_interruption(record: CallRecord) -> Iterator[Check]:
    """Judge the interruption of the second answer by the third question."""
    cut = record.turns[INTERRUPTED_TURN].answer
    by = record.turns[INTERRUPTED_TURN + 1] if len(record.turns) > INTERRUPTED_TURN + 1 else None
    heard_ms = 0 if cut is None else record.played_ms(cut.item_id)
    if cut is None or by is None or not cut.truncated_ms or not heard_ms:
        yield Check("the second answer is interrupted", False, _why_not_interrupted(cut, heard_ms))
        return
    yield Check(
        "the second answer is interrupted",
        True,
        f"after {heard_ms / 1000:.2f} s, response {cut.status}",
    )
    yield Check(
        "no old audio is sent after the interruption",
        cut.audio_after_interruption == 0 and cut.audio_after_end == 0,
        f"{cut.audio_after_interruption} audio deltas after the event that interrupted, "
        f"{cut.audio_after_end} after the end of the response",
    )
    yield check_stop(record, cut, by)
    yield Check(
        "the server knows how much was heard",
        cut.truncated_ms[-1] == heard_ms,
        f"{heard_ms} ms were played, the server says {cut.truncated_ms[-1]} ms",
    )
    yield check_history(cut)


def check_stop(record: CallRecord, cut: AnswerRecord, by: TurnRecord) -> Check:
    """Judge how soon the loudspeaker was silent once the interruption was certain."""
    span = record.span_of(cut.item_id)
    confirmed = record.time_of(None if by.timing is None else by.timing.confirmed_at)
    if span is None or confirmed is None:
        return Check("playback stops at once", False, "the interruption was never confirmed")
    late_s = span[1] - confirmed
    return Check(
        "playback stops at once",
        late_s <= MAX_STOP_S,
        f"the last old sample {late_s * 1000:+.0f} ms after the interruption was certain "
        f"(limit {MAX_STOP_S * 1000:.0f} ms), {span[1] - by.speech_from:.2f} s after the "
        "question began",
    )


def check_history(cut: AnswerRecord) -> Check:
    """Judge whether the server remembers exactly the words that were heard."""
    what = "the history holds exactly the heard words"
    sent, kept = spoken_words(cut.transcript), spoken_words(cut.history)
    if kept != sent[: len(kept)]:
        return Check(what, False, f"“{cut.history}” is not the beginning of “{cut.transcript}”")
    least, most = likely_prefixes(sent, spoken_words(cut.transcribed))
    off = max(least - len(kept), len(kept) - most, 0)
    return Check(
        what,
        off <= MAX_HISTORY_WORDS_OFF,
        f"it keeps “{cut.history}” ({len(kept)} of {len(sent)} words); a recogniser heard "
        f"“{cut.transcribed}”",
    )


def _why_not_interrupted(cut: AnswerRecord | None, heard_ms: int) -> str:
    if cut is None:
        return "there was no answer to interrupt"
    if not heard_ms:
        return "nothing of the answer was heard"
    return (
        f"it was heard to its end ({heard_ms / 1000:.1f} s, {cut.status or 'not done'}): "
        "too short, or the speech over it was not noticed"
    )
