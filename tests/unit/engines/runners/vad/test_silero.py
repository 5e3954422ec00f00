from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from duologue.core.errors import ConfigError
from duologue.engines.runners.vad.silero import Floats, SileroDetector, SileroVadSettings, build


class Network:
    """Adds what it hears to its state, so that every past window shows in the probability."""

    def __init__(self) -> None:
        self.audio: list[Floats] = []

    def __call__(self, audio: Floats, state: Floats) -> tuple[Floats, Floats]:
        self.audio.append(audio)
        state = state / 2 + audio.sum(axis=1)[None, :, None]
        return state[0, :, :1], state


def windows(seed: int, count: int) -> list[bytes]:
    sound = np.random.default_rng(seed).integers(-3000, 3000, count * 512).astype("<i2").tobytes()
    return [sound[1024 * n : 1024 * (n + 1)] for n in range(count)]


def test_a_window_is_heard_with_the_end_of_the_one_before() -> None:
    network = Network()
    detector = SileroDetector(network)
    memory = detector.open()
    first, second = windows(1, 2)
    for window in (first, second):
        detector.judge([memory], [window])
    expected = np.frombuffer(first + second, "<i2") / 32_768
    assert network.audio[0].shape == (1, 576)
    assert network.audio[0][0] == pytest.approx(np.concatenate((np.zeros(64), expected[:512])))
    assert network.audio[1][0] == pytest.approx(expected[512 - 64 :])


def test_streams_in_a_batch_sound_as_they_do_alone() -> None:
    detector = SileroDetector(Network())
    sounds = [windows(seed, 6) for seed in (1, 2, 3)]
    alone = []
    for sound in sounds:
        memory = detector.open()
        alone.append([detector.judge([memory], [window])[0] for window in sound])
    # The third stream joins late and the first leaves early.
    memories = [detector.open() for _ in sounds]
    batched: list[list[float]] = [[], [], []]
    for turn in range(8):
        rows = [row for row in range(3) if 0 <= turn - row < 6]
        found = detector.judge(
            [memories[row] for row in rows], [sounds[row][turn - row] for row in rows]
        )
        for row, probability in zip(rows, found, strict=True):
            batched[row].append(probability)
    assert batched == [pytest.approx(each, rel=1e-5) for each in alone]


def test_a_missing_model_refuses_to_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="models pull"):
        build(SileroVadSettings(model_path=str(tmp_path / "silero.onnx")))
