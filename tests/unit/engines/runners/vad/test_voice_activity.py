from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duologue.engines.payloads import AudioChunk, Payload, TextDelta, VoiceActivity
from duologue.engines.runners.contract import Job
from duologue.engines.runners.vad.voice_activity import WINDOWS_A_STEP, VoiceActivityRunner

WINDOW = 320
NAN_LEVEL = 31_000


class PeakDetector:
    """Says how loud each window is, and remembers how many it heard of each stream."""

    window_samples = WINDOW

    def __init__(self) -> None:
        self.batches: list[int] = []

    def open(self) -> list[int]:
        return []

    def judge(self, memories: Sequence[list[int]], windows: Sequence[bytes]) -> Sequence[float]:
        self.batches.append(len(windows))
        probabilities = []
        for memory, window in zip(memories, windows, strict=True):
            peak = int(np.frombuffer(window, "<i2").max())
            memory.append(peak)
            probabilities.append(float("nan") if peak == NAN_LEVEL else peak / 32_768)
        return probabilities


def opened(runner: VoiceActivityRunner, name: str = "a", *inputs: Payload) -> Job:
    job = Job(name)
    runner.open(job)
    job.inputs.extend(inputs)
    return job


def drained(runner: VoiceActivityRunner, job: Job) -> list[VoiceActivity]:
    outputs: list[VoiceActivity] = []
    while runner.ready(job):
        (step,) = runner.step([job])
        assert step.error is None
        outputs += [each for each in step.outputs if isinstance(each, VoiceActivity)]
    return outputs


def level(value: int, windows: int = 1) -> bytes:
    return np.full(windows * WINDOW, value, "<i2").tobytes()


def test_each_window_gets_a_probability_at_its_place_on_the_clock() -> None:
    runner = VoiceActivityRunner(PeakDetector(), max_batch=4)
    sound = level(16_384) + level(8192) + level(1)[:100]
    job = opened(runner, "a", AudioChunk(sound, 16_000, 1000))
    assert drained(runner, job) == [VoiceActivity(0.5, 1320), VoiceActivity(0.25, 1640)]


def test_the_clock_is_that_of_the_chunks() -> None:
    runner = VoiceActivityRunner(PeakDetector(), max_batch=4)
    job = opened(runner, "a", AudioChunk(bytes(2 * 48 * 60), 48_000, 480))
    job.input_ended = True
    assert [each.end_sample for each in drained(runner, job)] == [1440, 2400, 3360]


@given(st.lists(st.integers(0, 4000), max_size=10), st.sampled_from([8000, 16_000, 24_000]))
def test_any_chunking_gives_the_same_windows(cuts: list[int], rate_hz: int) -> None:
    sound = np.random.default_rng(3).integers(0, 20_000, 4000).astype("<i2").tobytes()

    def heard(places: list[int]) -> list[VoiceActivity]:
        runner = VoiceActivityRunner(PeakDetector(), max_batch=1)
        job = opened(runner)
        outputs = []
        for start, end in pairwise(places):
            job.inputs.append(AudioChunk(sound[2 * start : 2 * end], rate_hz, start))
            outputs += drained(runner, job)
        job.input_ended = True
        return outputs + drained(runner, job)

    assert heard([0, *sorted(cuts), 4000]) == heard([0, 4000])
    assert heard([0, 4000]) != []


def test_a_step_batches_the_jobs_and_takes_all_their_windows() -> None:
    detector = PeakDetector()
    runner = VoiceActivityRunner(detector, max_batch=4)
    jobs = [
        opened(runner, "a", AudioChunk(level(1, windows=3), 16_000)),
        opened(runner, "b", AudioChunk(level(2), 16_000)),
        opened(runner, "c"),
    ]
    steps = runner.step(jobs)
    assert detector.batches == [2, 1, 1]
    assert [len(step.outputs) for step in steps] == [3, 1, 0]


def test_a_whole_recording_is_judged_in_bounded_steps() -> None:
    runner = VoiceActivityRunner(PeakDetector(), max_batch=4)
    chunk = AudioChunk(level(9000, windows=WINDOWS_A_STEP + 5), 16_000)
    job = opened(runner, "a", chunk)
    (step,) = runner.step([job])
    assert len(step.outputs) == WINDOWS_A_STEP
    assert runner.ready(job)
    (step,) = runner.step([job])
    assert len(step.outputs) == 5
    assert not runner.ready(job)


def test_inputs_wait_while_a_step_has_enough() -> None:
    runner = VoiceActivityRunner(PeakDetector(), max_batch=4)
    many = [AudioChunk(level(9000), 16_000, n * WINDOW) for n in range(WINDOWS_A_STEP + 5)]
    job = opened(runner, "a", *many)
    runner.step([job])
    assert len(job.inputs) == 5
    assert len(drained(runner, job)) == 5


def test_a_job_without_a_number_fails_alone() -> None:
    runner = VoiceActivityRunner(PeakDetector(), max_batch=4)
    bad = level(9000) + level(NAN_LEVEL) + level(9000)
    jobs = [
        opened(runner, "a", AudioChunk(bad, 16_000)),
        opened(runner, "b", AudioChunk(level(9000, windows=3), 16_000)),
    ]
    failed, good = runner.step(jobs)
    assert failed.error is not None
    assert "640" in failed.error.message
    assert len(failed.outputs) == 1
    assert good.error is None
    assert len(good.outputs) == 3


def test_what_is_no_audio_fails_its_job_alone() -> None:
    runner = VoiceActivityRunner(PeakDetector(), max_batch=4)
    jobs = [
        opened(runner, "a", TextDelta("hello")),
        opened(runner, "b", AudioChunk(level(9000), 16_000)),
    ]
    failed, good = runner.step(jobs)
    assert failed.error is not None
    assert "TextDelta" in failed.error.message
    assert len(good.outputs) == 1


def test_a_detector_starts_anew_where_audio_goes_on_after_a_break() -> None:
    runner = VoiceActivityRunner(PeakDetector(), max_batch=4)
    job = opened(
        runner,
        "a",
        AudioChunk(level(9000) + level(7)[:200], 16_000),
        AudioChunk(level(16_384), 16_000, 1_000_000),
    )
    assert drained(runner, job) == [VoiceActivity(0.5, 1_000_320)]
    assert job.state.memory == [16_384]


def test_long_quiet_costs_one_message_a_second() -> None:
    runner = VoiceActivityRunner(PeakDetector(), max_batch=4)
    job = opened(runner, "a", AudioChunk(bytes(2 * 16_000 * 10), 16_000))
    ends = [each.end_sample for each in drained(runner, job)]
    assert ends[:100] == [WINDOW * n for n in range(1, 101)]
    assert ends[100:] == [16_000 * second for second in range(3, 11)]


@pytest.mark.parametrize("max_batch", [1, 4, 64])
def test_warming_up_runs_alone_and_in_a_batch(max_batch: int) -> None:
    detector = PeakDetector()
    VoiceActivityRunner(detector, max_batch).warm_up()
    assert detector.batches == [1, min(8, max_batch)]


def test_a_closed_job_is_forgotten() -> None:
    runner = VoiceActivityRunner(PeakDetector(), max_batch=4)
    job = opened(runner)
    runner.close(job)
    assert job.state is None
