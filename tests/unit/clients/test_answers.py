from __future__ import annotations

from duologue.clients.answers import Answers
from duologue.protocol.audio_formats import PcmFormat

RATE_HZ = 24_000
QUIET, LOUD = b"\x10\x00", b"\x00\x10"


def test_the_oldest_response_that_has_not_ended_is_active() -> None:
    answers = Answers(RATE_HZ)
    assert answers.active is None
    answers.begin("r1", PcmFormat())
    answers.begin("r2", PcmFormat())
    assert answers.active is answers.response("r1")
    answers.end("r1")
    assert answers.active is answers.response("r2")
    assert answers.end("r1") is None


def test_a_response_knows_its_items() -> None:
    answers = Answers(RATE_HZ)
    answers.begin("r1", PcmFormat())
    first = answers.item("i1", "r1")
    assert answers.item("i1", "r1") is first
    answers.item("i2", "r1")
    ended = answers.end("r1")
    assert ended is not None
    assert ended.items == ["i1", "i2"]
    assert answers.known("i1") is first
    assert answers.known("i3") is None


def test_silence_covers_all_that_have_not_ended() -> None:
    answers = Answers(RATE_HZ)
    answers.begin("r1", PcmFormat())
    answers.silence()
    answers.begin("r2", PcmFormat())
    first, second = answers.response("r1"), answers.response("r2")
    assert first is not None
    assert second is not None
    assert (first.silenced, second.silenced) == (True, False)


def test_the_first_audible_sample_is_found_across_pieces() -> None:
    answer = Answers(RATE_HZ).item("i1", "r1")
    answer.add_audio(QUIET * 100)
    assert answer.first_audible is None
    answer.add_audio(QUIET * 5 + LOUD * 5)
    answer.add_audio(LOUD)
    assert answer.first_audible == 105
    assert answer.alignment.samples == 111


def test_only_the_latest_are_remembered() -> None:
    answers = Answers(RATE_HZ)
    for number in range(100):
        answers.begin(f"r{number}", PcmFormat())
        answers.item(f"i{number}", f"r{number}")
    assert answers.response("r0") is None
    assert answers.known("i0") is None
    assert answers.known("i99") is not None
