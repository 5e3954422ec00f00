"""C22 and C41 with the real detectors behind a call: its own voice, a short word, and a fan."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat

import numpy as np
import pytest
from numpy.typing import NDArray

from duologue.artifacts.references import resolve_references
from duologue.artifacts.settings import ArtifactSettings
from duologue.artifacts.store import Store
from duologue.engines.payloads import Payload
from duologue.engines.pipeline import BUILT_IN_FOLDER, load_pipelines
from duologue.engines.runners.contract import Job, Runner
from duologue.engines.runners.registry import RunnerRegistry
from duologue.protocol.events import AudioCommitted, SpeechStarted
from tests.cases.test_detection import Listener, samples
from tests.cases.test_echo import PERSON, Speakerphone, recording, wire

pytestmark = [pytest.mark.models, pytest.mark.timeout(600)]

Floats = NDArray[np.float64]

RATE_HZ = 16_000
CHUNK_BYTES = 640
WORD_MS = 200
FADE = RATE_HZ // 50
WORD_DBFS = -26.0
FAN_DBFS = -40.0


def shipped(pipeline: str) -> Runner:
    """Load what a pipeline that ships runs on, as a worker would."""
    (stage,) = load_pipelines([BUILT_IN_FOLDER / f"{pipeline}.yaml"])[pipeline].stages
    settings = resolve_references(stage.settings, Store(ArtifactSettings()))
    runner = RunnerRegistry.installed().build(stage.runner, settings, lambda: None).runner
    runner.warm_up()
    return runner


@pytest.fixture(scope="module")
def silero() -> Runner:
    return shipped("vad")


class Real:
    """A script for the fake engine: a real runner, stepped until it has nothing more to say."""

    def __init__(self, runner: Runner) -> None:
        self.runner = runner
        self.job = Job("vad")
        runner.open(self.job)

    def __call__(self, payload: Payload) -> Sequence[Payload]:
        self.job.inputs.append(payload)
        outputs: list[Payload] = []
        while self.runner.ready(self.job):
            (step,) = self.runner.step([self.job])
            assert step.error is None
            outputs += step.outputs
        return outputs


def call(runner: Runner) -> Listener:
    talk = Listener(RATE_HZ)
    talk.engine.answers["vad"] = Real(runner)
    return talk


def at_level(sound: Floats, dbfs: float) -> Floats:
    return sound * 10 ** (dbfs / 20) / np.sqrt(np.mean(sound**2))


def word() -> Floats:
    """The 200 ms of a recorded sentence that are loudest, at the level of the case."""
    sentence, length = recording("0880"), samples(RATE_HZ, WORD_MS)
    powers = np.convolve(sentence**2, np.ones(length), "valid")
    start = int(powers.argmax())
    # A mouth opens and closes: a hard cut is a click, which no detector takes for a word.
    opening = np.hanning(2 * FADE)[:FADE]
    shape = np.concatenate((opening, np.ones(length - 2 * FADE), opening[::-1]))
    return at_level(sentence[start : start + length] * shape, WORD_DBFS)


def fan(ms: int) -> Floats:
    """Air: noise that falls by 6 dB an octave above 300 Hz."""
    white = np.fft.rfft(np.random.default_rng(3).standard_normal(samples(RATE_HZ, ms)))
    hz = np.fft.rfftfreq(samples(RATE_HZ, ms), 1 / RATE_HZ)
    return at_level(np.fft.irfft(white / np.sqrt(1 + (hz / 300) ** 2)), FAN_DBFS)


@pytest.mark.parametrize("noisy", [False, True])
def test_c41_a_short_word_is_a_turn_in_quiet_and_over_a_fan(silero: Runner, noisy: bool) -> None:
    sound = fan(4000) if noisy else np.random.default_rng(1).normal(0, 1e-4, 64_000)
    sound[24_000 : 24_000 + len(word())] += word()
    talk = call(silero)
    talk.hear(wire(sound), repeat(CHUNK_BYTES))
    assert len(talk.client.of(AudioCommitted)) == 1
    talk.close()


def test_c41_the_cheap_detector_hears_a_short_word_in_quiet() -> None:
    sound = np.random.default_rng(1).normal(0, 1e-4, 64_000)
    sound[24_000 : 24_000 + len(word())] += word()
    talk = call(shipped("vad_webrtc"))
    talk.hear(wire(sound), repeat(CHUNK_BYTES))
    assert len(talk.client.of(AudioCommitted)) == 1
    talk.close()


def test_c41_five_minutes_of_a_fan_are_nobody(silero: Runner) -> None:
    """The default detector alone: WebRTC's takes steady noise of this level for a voice."""
    talk = call(silero)
    minute = wire(fan(60_000))
    for _ in range(5):
        talk.hear(minute, repeat(8000))
    assert talk.client.of(SpeechStarted) == []
    talk.close()


class RealSpeakerphone(Speakerphone):
    """Hears itself with a real detector."""

    def __init__(self, runner: Runner, *, suppress: bool = True) -> None:
        super().__init__(suppress=suppress)
        self.engine.answers["vad"] = Real(runner)


def test_c22_the_real_detector_takes_its_own_voice_for_nobody(silero: Runner) -> None:
    talk = RealSpeakerphone(silero)
    for _ in range(3):
        talk.speak()
    assert talk.done() == [("completed", None)] * 3
    assert talk.client.of(SpeechStarted) == []
    talk.close()


def test_c22_the_real_detector_would_interrupt_itself(silero: Runner) -> None:
    talk = RealSpeakerphone(silero, suppress=False)
    talk.speak()
    assert talk.interrupted() == [True]
    talk.close()


@pytest.mark.parametrize("at_s", [2.0, 6.6, 12.5])
def test_c22_and_a_person_who_talks_over_it_for_somebody(silero: Runner, at_s: float) -> None:
    talk = RealSpeakerphone(silero)
    talk.speak()
    talk.speak(np.concatenate((np.zeros(int(at_s * RATE_HZ)), PERSON)))
    assert talk.interrupted() == [False, True]
    talk.close()
