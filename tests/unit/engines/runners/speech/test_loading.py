from __future__ import annotations

import msgspec
import pytest

from duologue.engines.runners.contract import Runner
from duologue.engines.runners.speech.loading import SpeechSettings, speech_runner
from duologue.engines.runners.speech.stages import CodecRunner, FusedRunner, TalkerRunner
from tests.fakes.speech_model import FakeCodec, FakeTalker

MODEL = speech_runner(
    SpeechSettings, lambda values: FakeTalker(values.slots), lambda values: FakeCodec(values.slots)
)


def made(**settings: object) -> Runner:
    values = msgspec.convert({"folder": "f", **settings}, SpeechSettings)
    return MODEL.build(values, lambda: None)


@pytest.mark.parametrize(
    ("part", "kind"),
    [("fused", FusedRunner), ("talker", TalkerRunner), ("codec", CodecRunner)],
)
def test_a_stage_is_the_part_that_it_is_said_to_be(part: str, kind: type) -> None:
    runner = made(part=part, slots=3)
    assert isinstance(runner, kind)
    assert runner.max_batch == 3


def test_a_model_ends_its_jobs_as_any_that_waits_for_inputs() -> None:
    assert not MODEL.wakes_itself


def test_an_unknown_part_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError, match="vocoder"):
        made(part="vocoder")
