from __future__ import annotations

from collections import deque

import pytest

from duologue.core.errors import EngineError
from duologue.engines.answer_payloads import AnswerWords, BeginAnswer
from duologue.engines.payloads import CodeFrames, SpeakText, TextDelta
from duologue.engines.runners.contract import Job
from duologue.engines.runners.speech.talking import TalkerJobs, Talking
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


# Answers that come word by word


def words(text: str, text_end: int, *, last: bool = False) -> AnswerWords:
    return AnswerWords(tuple(map(ord, text)), text_end, last)


def advanced(jobs: TalkerJobs, talking: Talking) -> list[object]:
    made: list[object] = []
    while talking.is_due:
        made += jobs.advance([talking])
    return made


NOTHING = CodeFrames(b"", BOOKS)


def test_the_talker_waits_for_words_and_goes_on_where_it_was() -> None:
    jobs = TalkerJobs(FakeTalker(), max_frames=10)
    asking = job(BeginAnswer((1, 2)))
    talking = jobs.open(asking)
    assert advanced(jobs, talking) == [NOTHING]
    asking.inputs.append(words("h", 1))
    assert advanced(jobs, talking) == [frame("hi.", 0)]
    asking.inputs.extend((words("i", 2), words("o", 3, last=True)))
    assert advanced(jobs, talking) == [frame("hio", 1), frame("hio", 2), over(3)]
    asking.inputs.append(SpeakText("x", 4))
    assert advanced(jobs, talking) == [frame("x", 0), over(4)]


def test_an_answer_sounds_the_same_however_its_words_come() -> None:
    text = "hello"
    together = job(BeginAnswer(()), words(text, 5, last=True))
    jobs = TalkerJobs(FakeTalker(), max_frames=10)
    expected = advanced(jobs, jobs.open(together))
    assert expected == [*(frame(text, at) for at in range(5)), over(5)]
    for cut in range(1, 5):
        parts = job(BeginAnswer(()), words(text[:cut], cut), words(text[cut:], 5, last=True))
        assert advanced(jobs, jobs.open(parts)) == expected
        jobs = TalkerJobs(FakeTalker(), max_frames=10)


def test_an_answer_without_words_is_over_at_once() -> None:
    talker = FakeTalker()
    jobs = TalkerJobs(talker, max_frames=10)
    talking = jobs.open(job(BeginAnswer(()), words("", 0, last=True)))
    assert advanced(jobs, talking) == [over(0)]
    assert talker.batches == []


def test_a_talker_that_is_done_early_passes_over_the_words_that_follow() -> None:
    talker = FakeTalker()
    jobs = TalkerJobs(talker, max_frames=10)
    asking = job(BeginAnswer(()), words("a.b", 3))
    talking = jobs.open(asking)
    assert advanced(jobs, talking) == [frame("a.b", 0), frame("a.b", 1), NOTHING]
    assert talker.open == []
    asking.inputs.extend((words("c", 4), words("", 4, last=True)))
    assert advanced(jobs, talking) == [over(4)]


def test_what_is_no_word_of_an_answer_fails() -> None:
    jobs = TalkerJobs(FakeTalker(), max_frames=10)
    talking = jobs.open(job(BeginAnswer(()), SpeakText("a", 1)))
    (error,) = jobs.advance([talking])
    assert isinstance(error, EngineError)
    assert "SpeakText" in error.message
    (refused,) = jobs.advance([jobs.open(job(BeginAnswer((), "bad"), words("a", 1)))])
    assert isinstance(refused, EngineError)


def test_closing_while_words_are_missing_frees_the_utterance() -> None:
    talker = FakeTalker()
    jobs = TalkerJobs(talker, max_frames=10)
    talking = jobs.open(job(BeginAnswer(()), words("a", 1)))
    advanced(jobs, talking)
    assert talking.waits
    jobs.close(talking)
    assert talker.open == []
