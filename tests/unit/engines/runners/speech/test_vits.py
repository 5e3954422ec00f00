from __future__ import annotations

from collections import deque
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import VitsModel, VitsTokenizer

from duologue.codecs.pcm import float_to_pcm
from duologue.core.errors import ConfigError, EngineError
from duologue.engines.payloads import AudioChunk, Payload, SpeakText, SpeechMark, TextDelta
from duologue.engines.runners.contract import Job
from duologue.engines.runners.speech.vits import VitsRunner, VitsSettings

pytestmark = pytest.mark.speech

Tiny = Callable[[str], Path]
SEED = 5


def runner_of(tiny_speech: Tiny, **more: object) -> VitsRunner:
    settings = {"seed": SEED, "chunk_ms": 20, "threads": 1, **more}
    runner = VitsRunner(VitsSettings(folder=str(tiny_speech("vits")), **settings))
    runner.warm_up()
    return runner


def said(runner: VitsRunner, *clauses: Payload) -> list[Payload]:
    job = Job("j", inputs=deque(clauses), input_ended=True)
    runner.open(job)
    outputs: list[Payload] = []
    while runner.ready(job):
        (step,) = runner.step([job])
        if step.error is not None:
            raise step.error
        outputs += step.outputs
    runner.close(job)
    return outputs


def pcm_of(outputs: list[Payload]) -> bytes:
    return b"".join(each.pcm for each in outputs if isinstance(each, AudioChunk))


@pytest.mark.parametrize(("voice", "speed"), [("0", 1.0), ("1", 1.5)])
def test_a_clause_is_what_the_library_makes_of_it(
    tiny_speech: Tiny, voice: str, speed: float
) -> None:
    runner = runner_of(tiny_speech)
    clause = SpeakText("Hello there.", 12, voice, speed)
    outputs = said(runner, clause)
    folder = tiny_speech("vits")
    ids = VitsTokenizer.from_pretrained(folder)(clause.text, return_tensors="pt").input_ids
    model = VitsModel.from_pretrained(folder).eval()
    torch.manual_seed(runner._seed(clause.text))
    with torch.no_grad():
        made = model(ids, speaker_id=int(voice), speaking_rate=speed).waveform[0].numpy()
    assert pcm_of(outputs) == float_to_pcm(made)
    assert np.abs(made).max() > 0.001
    assert outputs[-1] == SpeechMark(12, len(made))


def test_pieces_and_marks_of_clauses_follow_each_other(tiny_speech: Tiny) -> None:
    outputs = said(
        runner_of(tiny_speech),
        SpeakText("Hello", 5),
        SpeakText("", 6),
        SpeakText("?!", 8),
        SpeakText("you", 12),
    )
    at = 0
    for each in outputs:
        if isinstance(each, AudioChunk):
            assert each.start_sample == at
            assert len(each.pcm) <= 2 * 320
            at += len(each.pcm) // 2
    marks = [each for each in outputs if isinstance(each, SpeechMark)]
    assert [mark.text_end for mark in marks] == [5, 6, 8, 12]
    assert 0 < marks[0].sample == marks[1].sample == marks[2].sample < marks[3].sample == at


def test_with_a_seed_a_text_always_sounds_the_same(tiny_speech: Tiny) -> None:
    clause = SpeakText("Hello", 5)
    seeded, free = runner_of(tiny_speech), runner_of(tiny_speech, seed=0)
    assert pcm_of(said(seeded, clause)) == pcm_of(said(seeded, clause))
    assert pcm_of(said(free, clause)) != pcm_of(said(free, clause))


def test_a_voice_that_is_not_there_and_what_is_no_text_fail(tiny_speech: Tiny) -> None:
    runner = runner_of(tiny_speech)
    with pytest.raises(EngineError, match="0 to 1"):
        said(runner, SpeakText("Hello", 5, "2"))
    with pytest.raises(EngineError, match="TextDelta"):
        said(runner, TextDelta("Hello"))


def test_a_folder_without_a_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="does not exist"):
        VitsRunner(VitsSettings(folder=str(tmp_path)))
    (tmp_path / "config.json").write_text('{"model_type": "vits"}')
    with pytest.raises(ConfigError, match="cannot be loaded"):
        VitsRunner(VitsSettings(folder=str(tmp_path)))
