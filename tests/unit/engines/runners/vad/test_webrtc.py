from __future__ import annotations

import numpy as np

from duologue.engines.payloads import AudioChunk, VoiceActivity
from duologue.engines.runners.contract import Job
from duologue.engines.runners.vad.webrtc import WebrtcDetector, WebrtcVadSettings, build


def voiced(seconds: float) -> bytes:
    """Something like a vowel: harmonics of 140 Hz that fall off, with a slow wobble."""
    t = np.arange(int(16_000 * seconds)) / 16_000
    wave = sum(np.sin(2 * np.pi * 140 * k * t) / k for k in range(1, 20))
    return (4000 * wave * (1 + 0.3 * np.sin(2 * np.pi * 5 * t))).astype("<i2").tobytes()


def test_a_voice_is_speech_and_silence_is_none() -> None:
    runner = build(WebrtcVadSettings())
    runner.warm_up()
    job = Job("a")
    runner.open(job)
    job.inputs.append(AudioChunk(bytes(16_000) + voiced(0.5) + bytes(32_000), 16_000))
    found: dict[int, float] = {}
    while runner.ready(job):
        (step,) = runner.step([job])
        found |= {e.end_sample: e.probability for e in step.outputs if isinstance(e, VoiceActivity)}
    assert set(found.values()) == {0.0, 1.0}
    assert all(found[end] == 0.0 for end in range(320, 8001, 320))
    assert all(found[end] == 1.0 for end in range(9600, 16_001, 320))
    assert found[32_000] == 0.0


def test_streams_do_not_hear_each_other() -> None:
    detector = WebrtcDetector(WebrtcVadSettings(mode=0))
    loud, quiet = detector.open(), detector.open()
    window = voiced(0.02)
    for _ in range(10):
        probabilities = detector.judge([loud, quiet], [window, bytes(640)])
    assert list(probabilities) == [1.0, 0.0]
