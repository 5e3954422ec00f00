from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from duologue.core.errors import ConfigError
from duologue.engines.payloads import AudioChunk, EndOfTurn, TextDelta
from duologue.engines.runners.contract import Job
from duologue.engines.runners.end_of_turn.smart_turn import (
    Floats,
    SmartTurnRunner,
    SmartTurnSettings,
    build,
    turn_features,
)

# What WhisperFeatureExtractor(chunk_length=8) of transformers 5.24 gives for `sweep` behind 6 s of
# silence, with do_normalize=True: frame -> bands 0, 5, 20, 40, 60, 79.
PUBLISHED = {
    0: (-0.09348, -0.09348, -0.09348, -0.09348, -0.09348, -0.09348),
    300: (-0.09348, -0.09348, -0.09348, -0.09348, -0.09348, -0.09348),
    600: (0.82761, 1.07821, -0.09348, 0.23522, 0.67096, 0.11187),
    700: (-0.09348, -0.09348, -0.09348, 0.18732, -0.01643, -0.09348),
    799: (-0.09348, -0.09348, -0.09348, -0.09348, 0.75291, -0.09348),
}


def sweep() -> bytes:
    t = np.arange(32_000) / 16_000
    rising = 0.4 * np.sin(2 * np.pi * (200 * t + 900 * t * t)) * np.exp(-(((t - 0.9) / 0.5) ** 2))
    sound = rising + 0.02 * np.sin(2 * np.pi * 3456 * t)
    return np.rint(32_768 * sound).astype("<i2").tobytes()


class Ear:
    """Stands for the network; keeps what it was given."""

    def __init__(self, answer: float = 0.75) -> None:
        self.answer = answer
        self.heard: list[Floats] = []

    def __call__(self, features: Floats) -> float:
        self.heard.append(features)
        return self.answer


def job_of(runner: SmartTurnRunner, *chunks: AudioChunk | TextDelta, ended: bool = True) -> Job:
    job = Job("a")
    runner.open(job)
    job.inputs.extend(chunks)
    job.input_ended = ended
    return job


def test_features_are_those_of_the_published_extractor() -> None:
    features = turn_features(sweep())
    assert features.shape == (1, 80, 800)
    for frame, values in PUBLISHED.items():
        # The published numbers come from floats, ours from 16-bit samples.
        assert features[0, (0, 5, 20, 40, 60, 79), frame] == pytest.approx(values, abs=3e-3)


def test_loudness_does_not_matter() -> None:
    quiet = (np.frombuffer(sweep(), "<i2") // 4).astype("<i2").tobytes()
    difference = np.abs(turn_features(quiet) - turn_features(sweep()))
    assert difference.max() < 0.2
    assert difference.mean() < 0.01


def test_silence_can_be_judged() -> None:
    assert np.isfinite(turn_features(b"")).all()


def test_a_turn_gets_one_judgement_when_all_of_it_is_here() -> None:
    ear = Ear()
    runner = SmartTurnRunner(ear)
    sound = sweep()
    job = job_of(runner, AudioChunk(sound[:20_000], 16_000, 500), ended=False)
    assert runner.step([job])[0].outputs == ()
    assert not runner.ready(job)
    job.inputs.append(AudioChunk(sound[20_000:], 16_000, 10_500))
    job.input_ended = True
    assert runner.ready(job)
    (step,) = runner.step([job])
    assert step.outputs == (EndOfTurn(0.75, 32_500),)
    assert step.done
    (heard,) = ear.heard
    assert np.array_equal(heard, turn_features(sound))


def test_the_last_eight_seconds_count() -> None:
    ear = Ear()
    runner = SmartTurnRunner(ear)
    earlier = np.full(9 * 16_000, 20_000, "<i2").tobytes()
    chunks = [
        AudioChunk(earlier, 16_000, 0),
        AudioChunk(bytes(12 * 16_000), 16_000, 144_000),
        AudioChunk(sweep(), 16_000, 240_000),
    ]
    (step,) = runner.step([job_of(runner, *chunks)])
    assert step.outputs == (EndOfTurn(0.75, 272_000),)
    assert np.array_equal(ear.heard[0], turn_features(sweep()))


def test_audio_of_another_rate_keeps_its_clock() -> None:
    runner = SmartTurnRunner(Ear())
    (step,) = runner.step([job_of(runner, AudioChunk(bytes(4800), 24_000, 100))])
    assert step.outputs == (EndOfTurn(0.75, 2500),)


@pytest.mark.parametrize(
    ("chunks", "answer", "word"),
    [
        ((), 0.5, "no audio"),
        ((TextDelta("hm"),), 0.5, "TextDelta"),
        ((AudioChunk(bytes(640), 16_000),), float("nan"), "320 samples"),
        ((AudioChunk(bytes(3), 16_000),), 0.5, "3 bytes"),
    ],
)
def test_what_cannot_be_judged_fails(
    chunks: tuple[AudioChunk | TextDelta, ...], answer: float, word: str
) -> None:
    runner = SmartTurnRunner(Ear(answer))
    (step,) = runner.step([job_of(runner, *chunks)])
    assert step.error is not None
    assert word in step.error.message
    assert step.outputs == ()


def test_warming_up_judges_silence_and_closing_forgets() -> None:
    ear = Ear()
    runner = SmartTurnRunner(ear)
    runner.warm_up()
    assert len(ear.heard) == 1
    job = job_of(runner)
    runner.close(job)
    assert job.state is None


def test_a_missing_model_refuses_to_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="models pull"):
        build(SmartTurnSettings(model_path=str(tmp_path / "smart.onnx")))
