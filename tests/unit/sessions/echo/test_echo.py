"""The judge of echoes, with noise that rises and falls as speech does."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

from duologue.core.audio import AudioFrame
from duologue.sessions.echo.echo import MAX_DELAY_S, EchoJudge

Floats = NDArray[np.float64]

RATE_HZ = 16000
WINDOW = 512
T = 100.0
"""When playing and hearing begin."""


def speech(seconds: float, seed: int) -> Floats:
    """Noise in syllables: bands and loudness change eight times a second."""
    chance = np.random.default_rng(seed)
    samples = int(seconds * RATE_HZ)
    white = np.fft.rfft(chance.standard_normal(samples))
    hz = np.fft.rfftfreq(samples, 1 / RATE_HZ)
    out = np.zeros(samples)
    points = np.arange(0, samples + 2000, 2000)
    for low, high in ((150, 400), (400, 900), (900, 1800), (1800, 3800)):
        band = np.fft.irfft(np.where((hz >= low) & (hz < high), white, 0), samples)
        loud = chance.uniform(0, 1, len(points)) ** 2
        out += band * np.interp(np.arange(samples), points, loud)
    return 0.1 * out / np.sqrt(np.mean(out**2))


def pcm(samples: Floats) -> bytes:
    return (np.clip(samples, -1, 1) * 32767).astype("<i2").tobytes()


class Room:
    """A loudspeaker, a microphone, and the judge."""

    def __init__(self, answer: Floats) -> None:
        self.judge = EchoJudge(RATE_HZ, RATE_HZ)
        self.answer = answer
        self.until = T
        for start in range(0, len(answer), 3200):
            piece = answer[start : start + 3200]
            self.judge.played(pcm(piece), T + start / RATE_HZ, T)
            self.until = T + (start + len(piece)) / RATE_HZ

    def hear(
        self, delay_s: float, gain: float = 0.25, other: Floats | None = None, jitter_s: float = 0
    ) -> Iterator[bool]:
        """Whether each window was taken for the echo."""
        heard = np.zeros(len(self.answer) + RATE_HZ)
        delay = int(delay_s * RATE_HZ)
        heard[delay : delay + len(self.answer)] = gain * self.answer
        if other is not None:
            heard[: len(other)] += other[: len(heard)]
        chance = np.random.default_rng(7)
        for end in range(WINDOW, len(self.answer), WINDOW):
            late = chance.uniform(0, jitter_s) if jitter_s else 0.0
            now = T + end / RATE_HZ + late
            if not self.judge.listens(now, self.until):
                yield False
                continue
            start = max(0, end - self.judge.heard_samples)
            frame = AudioFrame(pcm(heard[start:end]), RATE_HZ, start)
            yield self.judge.is_echo(frame, now - end / RATE_HZ)


def share(verdicts: Iterator[bool], skip_s: float = 1.0) -> float:
    """How many windows after the first second were taken for the echo."""
    later = list(verdicts)[int(skip_s * RATE_HZ / WINDOW) :]
    return sum(later) / len(later)


@pytest.mark.parametrize("delay_s", [0.0, 0.02, 0.183, 0.48])
@pytest.mark.parametrize("gain", [0.1, 0.25, 1.0])
def test_an_echo_is_known_at_any_delay_and_loudness(delay_s: float, gain: float) -> None:
    assert share(Room(speech(6, 1)).hear(delay_s, gain)) > 0.97


def test_an_echo_that_comes_too_late_is_none() -> None:
    assert share(Room(speech(6, 1)).hear(MAX_DELAY_S + 0.2)) < 0.05


def test_another_voice_is_none() -> None:
    assert share(Room(speech(6, 1)).hear(0, 0.0, speech(6, 2))) < 0.05


def test_who_talks_over_the_echo_is_heard_at_once() -> None:
    other = np.concatenate((np.zeros(3 * RATE_HZ), speech(3, 2)))
    verdicts = list(Room(speech(6, 1)).hear(0.183, 0.25, other))
    before, after = verdicts[31 : 3 * 31], verdicts[3 * 31 + 8 :]
    assert sum(before) / len(before) > 0.97
    # A window that is loud in the echo and not in the voice may still be taken for it.
    assert sum(after) / len(after) < 0.4


def test_a_network_that_is_uneven_does_not_hide_it() -> None:
    assert share(Room(speech(6, 1)).hear(0.183, jitter_s=0.06)) > 0.9


def test_audio_that_was_held_up_is_found_at_its_new_place() -> None:
    room = Room(speech(8, 1))
    verdicts = list(room.hear(0.05))
    assert all(verdicts[31:120])
    room = Room(speech(8, 1))
    judge, answer = room.judge, room.answer
    found = []
    for end in range(WINDOW, len(answer), WINDOW):
        # From the middle on, everything arrives half a second late, for good.
        late = 0.4 if end > len(answer) // 2 else 0.0
        start = max(0, end - judge.heard_samples)
        frame = AudioFrame(pcm(0.3 * answer[start:end]), RATE_HZ, start)
        found.append(judge.is_echo(frame, T + late))
    assert sum(found[-60:]) / 60 > 0.9


def test_nothing_is_listened_for_while_nothing_plays() -> None:
    judge = EchoJudge(RATE_HZ, RATE_HZ)
    assert not judge.listens(T, float("-inf"))
    judge.played(bytes(3200), T, T)
    assert judge.listens(T + 0.5, T + 0.1)
    assert not judge.listens(T + 2, T + 0.1)


def test_with_too_little_to_go_by_there_is_no_telling() -> None:
    judge = EchoJudge(RATE_HZ, RATE_HZ)
    judge.played(pcm(speech(1, 1)), T, T)
    assert not judge.is_echo(AudioFrame(bytes(200), RATE_HZ, 0), T)


def test_what_was_taken_back_is_no_echo() -> None:
    answer = speech(6, 1)
    room = Room(answer)
    room.until = T + 2.0
    # The client stopped playing after two seconds; somebody says the same words later.
    verdicts = list(room.hear(0.1))
    assert all(verdicts[31:62])
    assert not any(verdicts[int(3.2 * RATE_HZ / WINDOW) :])


def test_an_answer_after_one_that_was_taken_back_is_known_too() -> None:
    first, second = speech(6, 1), speech(4, 5)
    room = Room(first)
    room.judge.listens(T + 1.0, T + 1.0)
    for start in range(0, len(second), 3200):
        piece = pcm(second[start : start + 3200])
        room.judge.played(piece, T + 1.0 + start / RATE_HZ, T + 1.0)
    heard = np.concatenate((first[:RATE_HZ], second))
    verdicts = []
    for end in range(WINDOW, len(heard), WINDOW):
        start = max(0, end - room.judge.heard_samples)
        frame = AudioFrame(pcm(0.25 * heard[start:end]), RATE_HZ, start)
        verdicts.append(room.judge.is_echo(frame, T))
    assert sum(verdicts[62:]) / len(verdicts[62:]) > 0.9


def test_memory_of_what_nobody_asks_about_is_bounded() -> None:
    judge = EchoJudge(RATE_HZ, RATE_HZ)
    for number in range(1000):
        now = T + number * 0.2
        judge.played(bytes(6400), now, now)
    assert len(judge._waiting) < 20


def test_a_delay_that_was_not_found_for_long_is_forgotten() -> None:
    room = Room(speech(4, 1))
    list(room.hear(0.1))
    assert room.judge._lag is not None
    judge, answer = room.judge, speech(3, 9)
    judge.played(pcm(answer), T + 60, T + 60)
    frame = AudioFrame(pcm(speech(1, 4)), RATE_HZ, 60 * RATE_HZ)
    judge.is_echo(frame, T)
    assert judge._lag is None
