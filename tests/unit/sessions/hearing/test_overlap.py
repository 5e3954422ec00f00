"""Whether speech over an answer interrupts it."""

from __future__ import annotations

from itertools import product

import pytest

from duologue.sessions.hearing.overlap import Overlap, OverlapDecision, decide


def overlap(
    *, answering: bool = True, audible: bool = True, speech_ms: int = 0, interrupts: bool = True
) -> Overlap:
    return Overlap(
        answering=answering,
        audible=audible,
        speech_ms=speech_ms,
        interrupts=interrupts,
        min_interruption_ms=350,
    )


@pytest.mark.parametrize(("audible", "interrupts"), [*product([True, False], repeat=2)])
def test_where_nobody_answers_a_turn_is_simply_a_turn(audible: bool, interrupts: bool) -> None:
    free = overlap(answering=False, audible=audible, interrupts=interrupts)
    assert decide(free) is OverlapDecision.NO_OVERLAP


@pytest.mark.parametrize(
    ("speech_ms", "decision"),
    [
        (0, OverlapDecision.WAIT),
        (349, OverlapDecision.WAIT),
        (350, OverlapDecision.INTERRUPT),
        (9000, OverlapDecision.INTERRUPT),
    ],
)
def test_an_answer_that_is_heard_stops_only_for_enough_speech(
    speech_ms: int, decision: OverlapDecision
) -> None:
    assert decide(overlap(speech_ms=speech_ms)) is decision


def test_an_answer_that_nobody_has_heard_is_withdrawn_at_once() -> None:
    assert decide(overlap(audible=False)) is OverlapDecision.INTERRUPT


@pytest.mark.parametrize(("audible", "speech_ms"), [*product([True, False], [0, 9000])])
def test_with_interruptions_switched_off_both_talk(audible: bool, speech_ms: int) -> None:
    both = overlap(audible=audible, speech_ms=speech_ms, interrupts=False)
    assert decide(both) is OverlapDecision.TALK_OVER
