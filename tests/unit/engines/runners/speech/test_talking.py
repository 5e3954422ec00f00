from __future__ import annotations

from collections import deque

import pytest

from duologue.core.errors import EngineError
from duologue.engines.payloads import CodeFrames, SpeakText, TextDelta
from duologue.engines.runners.contract import Job
from duologue.engines.runners.speech.talking import TalkerJobs
from tests.fakes.speech_model import BOOKS, FakeTalker, codes_of


def job(*clauses: object) -> Job:
    return Job("j", inputs=deque(clauses))  # type: ignore[arg-type]


def frame(text: str, at: int) -> CodeFrames:
    return CodeFrames(codes_of(text)[at].astype("<u2").tobytes(), BOOKS)


def over(text_end: int) -> CodeFrames:
    return CodeFrames(b"", BOOKS, text_end=text_end)


def test_a_clause_is_said_a_frame_a_step_and_then_said_to_be_over() -> None:
    jobs = TalkerJobs(FakeTalker(), max_frames=10)
    talking = jobs.open(job(SpeakText("hi", 2), SpeakText("o", 4)))
    made = []
    while talking.is_due:
        made += jobs.advance([talking])
    assert made == [frame("hi", 0), frame("hi", 1), over(2), frame("o", 0), over(4)]


def test_a_clause_of_blanks_asks_nothing_of_the_talker() -> None:
    talker = FakeTalker()
    jobs = TalkerJobs(talker, max_frames=10)
    talking = jobs.open(job(SpeakText(" ", 1)))
    assert jobs.advance([talking]) == [over(1)]
    assert talker.batches == []


def test_jobs_share_a_step_each_with_its_own_frame() -> None:
    talker = FakeTalker()
    jobs = TalkerJobs(talker, max_frames=10)
    both = [jobs.open(job(SpeakText(text, 3))) for text in ("abc", "xyz")]
    jobs.advance(both[:1])
    assert jobs.advance(both) == [frame("abc", 1), frame("xyz", 0)]
    assert talker.batches == [1, 2]


def test_what_cannot_be_said_fails_alone() -> None:
    jobs = TalkerJobs(FakeTalker(), max_frames=10)
    bad, good = jobs.open(job(SpeakText("bad", 3))), jobs.open(job(SpeakText("good", 4)))
    error, said = jobs.advance([bad, good])
    assert isinstance(error, EngineError)
    assert error.code == "not_said"
    assert said == frame("good", 0)


def test_what_is_no_text_fails() -> None:
    jobs = TalkerJobs(FakeTalker(), max_frames=10)
    (error,) = jobs.advance([jobs.open(job(TextDelta("a")))])
    assert isinstance(error, EngineError)
    assert "TextDelta" in error.message


def test_an_utterance_without_an_end_is_cut_off() -> None:
    talker = FakeTalker()
    jobs = TalkerJobs(talker, max_frames=3)
    talking = jobs.open(job(SpeakText("forever", 7)))
    made = []
    while talking.is_due:
        made += jobs.advance([talking])
    assert len(made) == 4
    assert made[-1] == over(7)
    assert talker.open == []


def test_closing_in_the_middle_of_a_word_frees_the_utterance_and_the_slot() -> None:
    talker = FakeTalker(slots=1)
    jobs = TalkerJobs(talker, max_frames=10)
    talking = jobs.open(job(SpeakText("hello", 5)))
    jobs.advance([talking])
    with pytest.raises(EngineError, match="1 slots"):
        jobs.open(job())
    jobs.close(talking)
    assert talker.open == []
    jobs.open(job())
