from __future__ import annotations

from duologue.engines.answer_payloads import AnswerWords, BeginAnswer


def test_words_are_what_a_thinker_may_be_ahead_of_its_talker() -> None:
    assert BeginAnswer((1, 2, 3)).cost() == 0
    assert AnswerWords((1, 2, 3), 9).cost() == 3
    assert AnswerWords((), 9, last=True).cost() == 0
