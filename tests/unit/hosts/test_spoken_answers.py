from __future__ import annotations

from duologue.hosts.spoken_answers import SpokenAnswers


def test_an_answer_is_known_until_it_expires() -> None:
    answers = SpokenAnswers()
    answers.keep("a", "Hello", expires_at=10)
    assert answers.get("a", now=9.9) == "Hello"
    assert answers.get("a", now=10) is None
    assert answers.get("a", now=9.9) is None, "it is forgotten"
    assert answers.get("never", now=0) is None


def test_only_so_many_are_kept_and_the_oldest_goes_first() -> None:
    answers = SpokenAnswers(most=2)
    for name in ("a", "b", "c"):
        answers.keep(name, name, expires_at=10)
    assert [answers.get(name, now=0) for name in ("a", "b", "c")] == [None, "b", "c"]
