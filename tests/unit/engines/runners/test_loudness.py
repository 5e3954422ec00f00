from __future__ import annotations

from array import array

import pytest

from duologue.engines.payloads import AudioChunk, Payload, TextDelta, VoiceActivity
from duologue.engines.runners.contract import Job, Step
from duologue.engines.runners.loudness import LoudnessRunner, LoudnessSettings
from duologue.engines.runners.scripted import ToneRunner, ToneSettings


def judge(*payloads: Payload, threshold: int = 2000) -> Step:
    runner = LoudnessRunner(LoudnessSettings(threshold=threshold))
    job = Job(id="a")
    runner.open(job)
    job.inputs.extend(payloads)
    assert runner.ready(job) is bool(payloads)
    (step,) = runner.step([job])
    return step


def chunk(level: int, samples: int = 640, start: int = 0) -> AudioChunk:
    return AudioChunk(array("h", [level, -level] * (samples // 2)).tobytes(), 16_000, start)


@pytest.mark.parametrize(("level", "probability"), [(0, 0.0), (1000, 0.5), (2000, 1.0), (9000, 1)])
def test_probability_grows_with_the_peak(level: int, probability: float) -> None:
    assert judge(chunk(level)).outputs == [VoiceActivity(probability, 640)]


def test_every_chunk_is_answered_at_its_place_on_the_stream() -> None:
    step = judge(chunk(0, start=0), chunk(5000, start=640), chunk(0, start=1280))
    ends = [(each.end_sample, each.probability) for each in step.outputs]  # type: ignore[union-attr]
    assert ends == [(640, 0.0), (1280, 1.0), (1920, 0.0)]
    assert not step.done


def test_any_chunking_hears_a_tone() -> None:
    runner = ToneRunner(ToneSettings())
    job = Job(id="t")
    runner.open(job)
    job.inputs.append(TextDelta("tone"))
    (step,) = runner.step([job])
    pcm = next(each.pcm for each in step.outputs if isinstance(each, AudioChunk))
    for size in (320, 640, 960):
        pieces = [AudioChunk(pcm[at : at + size], 24_000, at // 2) for at in range(0, 4800, size)]
        assert all(each.probability == 1.0 for each in judge(*pieces).outputs)  # type: ignore[union-attr]


def test_no_samples_are_silence() -> None:
    assert judge(AudioChunk(b"", 16_000, 5)).outputs == [VoiceActivity(0.0, 5)]


def test_what_is_no_audio_fails_the_job_alone() -> None:
    step = judge(chunk(0), TextDelta("hello"))
    assert step.error is not None
    assert "TextDelta" in step.error.message
    assert len(step.outputs) == 1
