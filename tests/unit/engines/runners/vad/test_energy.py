from __future__ import annotations

import msgspec
import numpy as np
import pytest

from duologue.engines.payloads import AudioChunk, VoiceActivity
from duologue.engines.runners.contract import Job
from duologue.engines.runners.vad.energy import (
    ENERGY_VAD,
    EnergyDetector,
    EnergyVadSettings,
    build,
    level_dbfs,
)


def tone(amplitude: float, samples: int = 320) -> bytes:
    phase = 2 * np.pi * 500 * np.arange(samples) / 16_000
    return (32_768 * amplitude * np.sin(phase)).astype("<i2").tobytes()


def test_a_tone_is_speech_between_two_silences() -> None:
    runner = build(EnergyVadSettings())
    runner.warm_up()
    job = Job("a")
    runner.open(job)
    job.inputs.append(AudioChunk(bytes(640) + tone(0.1) + bytes(640), 16_000))
    (step,) = runner.step([job])
    loud = [each.probability > 0.5 for each in step.outputs if isinstance(each, VoiceActivity)]
    assert loud == [False, True, False]


def test_level_is_relative_to_full_scale() -> None:
    assert level_dbfs(tone(0.5)) == pytest.approx(-9.03, abs=0.01)
    assert level_dbfs(tone(0.05)) == pytest.approx(-29.03, abs=0.05)
    assert level_dbfs(bytes(640)) == -120
    assert level_dbfs(b"") == -120


def test_probability_rises_smoothly_through_the_threshold() -> None:
    level = level_dbfs(tone(0.01))
    (half,) = EnergyDetector(EnergyVadSettings(threshold_dbfs=level)).judge([None], [tone(0.01)])
    assert half == pytest.approx(0.5)
    detector = EnergyDetector(EnergyVadSettings(threshold_dbfs=-40, slope_db=3))
    amplitudes = [0.0, 0.003, 0.01, 0.02, 0.05, 0.5]
    windows = [tone(amplitude) for amplitude in amplitudes]
    found = list(detector.judge([None] * len(windows), windows))
    assert found == sorted(found)
    assert found[0] < 1e-9
    assert found[-1] > 0.9999


def test_a_steep_slope_does_not_overflow() -> None:
    detector = EnergyDetector(EnergyVadSettings(threshold_dbfs=0, slope_db=0.001))
    assert detector.judge([None], [bytes(640)])[0] < 1e-100


def test_settings_are_checked() -> None:
    with pytest.raises(msgspec.ValidationError, match="window_ms"):
        msgspec.convert({"window_ms": 500}, ENERGY_VAD.settings)
