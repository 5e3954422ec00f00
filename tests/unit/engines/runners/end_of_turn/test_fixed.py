from __future__ import annotations

import pytest

from duologue.engines.payloads import AudioChunk, EndOfTurn, TextDelta
from duologue.engines.runners.contract import Job, Runner
from duologue.engines.runners.end_of_turn.fixed import FIXED_END_OF_TURN, FixedEndOfTurnSettings
from duologue.engines.runners.registry import BUILT_IN


def make_runner(probability: float = 0.25) -> Runner:
    runner = FIXED_END_OF_TURN.build(FixedEndOfTurnSettings(probability=probability), lambda: None)
    runner.warm_up()
    return runner


def test_it_is_found_by_its_name() -> None:
    assert BUILT_IN["fixed_end_of_turn"].endswith(":FIXED_END_OF_TURN")


@pytest.mark.parametrize("probability", [0.0, 0.25, 1.0])
def test_it_says_the_same_of_every_turn_once_all_of_it_is_here(probability: float) -> None:
    model, job = make_runner(probability), Job("a")
    model.open(job)
    assert not model.ready(job)
    job.inputs.append(AudioChunk(bytes(200), 16000, 50))
    job.inputs.append(AudioChunk(bytes(20), 16000, 150))
    assert model.ready(job)
    (step,) = model.step([job])
    assert (step.outputs, step.done) == ((), False)
    job.input_ended = True
    assert model.ready(job)
    (step,) = model.step([job])
    assert (step.outputs, step.done) == ((EndOfTurn(probability, 160),), True)
    model.close(job)
    assert job.state is None


def test_what_is_no_audio_fails_the_job_alone() -> None:
    model, good, bad = make_runner(), Job("good", input_ended=True), Job("bad")
    bad.inputs.append(TextDelta("x"))
    for job in (good, bad):
        model.open(job)
    first, second = model.step([good, bad])
    assert first.done
    assert second.error is not None
