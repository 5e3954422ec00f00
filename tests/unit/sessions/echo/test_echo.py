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

    def __init__(self, answer: Floats, begins_s: float = T) -> None:
        self.judge = EchoJudge(RATE_HZ, RATE_HZ)
        self.answer = answer
        self.begins_s = self.until = begins_s
        for start in range(0, len(answer), 3200):
            piece = answer[start : start + 3200]
            self.judge.played(pcm(piece), self.until, begins_s)
            self.until = begins_s + (start + len(piece)) / RATE_HZ

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
            yield self.judged(heard, end, late)

    def judged(self, heard: Floats, end: int, late_s: float) -> bool:
        """Whether what ends there is taken for the echo, though it comes later than it was said."""
        offset = self.begins_s + late_s
        if not self.judge.listens(end / RATE_HZ, offset, self.until):
            return False
        start = max(0, end - self.judge.heard_samples)
        return self.judge.is_echo(AudioFrame(pcm(heard[start:end]), RATE_HZ, start), offset)


def share(verdicts: Iterator[bool], skip_s: float = 1.0) -> float:
    """How many windows after the first second were taken for the echo."""
    later = list(verdicts)[int(skip_s * RATE_HZ / WINDOW) :]
    return sum(later) / len(later)


@pytest.mark.parametrize("delay_s", [0.0, 0.02, 0.183, 0.48])
@pytest.mark.parametrize("gain", [0.1, 0.25, 1.0])
def test_an_echo_is_known_at_any_delay_and_loudness(delay_s: float, gain: float) -> None:
    assert share(Room(speech(6, 1)).hear(delay_s, gain)) > 0.97


@pytest.mark.parametrize("part", range(8))
def test_it_is_known_wherever_between_two_samples_or_rows_the_answer_begins(part: int) -> None:
    """A row was left out of each piece, in half of these places."""
    room = Room(speech(3, 1), T + 0.003 + part / 8 / RATE_HZ)
    verdicts = list(room.hear(0.183))
    assert sum(verdicts[20:]) / len(verdicts[20:]) > 0.97
    there = room.judge._slots
    assert set(np.diff(np.sort(there[there >= 0]))) == {1}


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


HELD_UP_S = 2.0


def in_bursts(end: int) -> float:
    """How late what ends there comes, on a line that lets nothing through for seconds."""
    return HELD_UP_S - end / RATE_HZ % HELD_UP_S


@pytest.mark.parametrize("before", [True, False], ids=["some came in time", "none did"])
def test_an_echo_that_comes_in_bursts_is_known_by_when_it_was_heard(before: bool) -> None:
    room = Room(speech(8, 1))
    if before:
        room.judge.arrived(T)
    heard = np.concatenate((np.zeros(RATE_HZ // 5), 0.25 * room.answer, np.zeros(RATE_HZ)))
    verdicts = [room.judged(heard, end, in_bursts(end)) for end in range(WINDOW, 8 * RATE_HZ, 512)]
    # Of speech that has just begun there is too little to tell, in bursts or not.
    first = 12 if before else int(HELD_UP_S * RATE_HZ / WINDOW)
    assert sum(verdicts[first:]) / len(verdicts[first:]) > 0.97


def test_what_is_left_of_an_echo_may_come_long_after_the_answer() -> None:
    room = Room(speech(4, 1))
    heard = np.concatenate((np.zeros(RATE_HZ // 5), 0.25 * room.answer))
    ends = range(WINDOW, len(heard), WINDOW)
    verdicts = [room.judged(heard, end, 0.0 if end < 3 * RATE_HZ else HELD_UP_S) for end in ends]
    assert sum(verdicts[31:]) / len(verdicts[31:]) > 0.97


def test_who_speaks_is_heard_in_bursts_too() -> None:
    room = Room(speech(8, 1))
    room.judge.arrived(T)
    other = speech(8, 2)
    verdicts = [room.judged(other, end, in_bursts(end)) for end in range(WINDOW, len(other), 512)]
    assert sum(verdicts) / len(verdicts) < 0.07


def test_nothing_is_listened_for_while_nothing_plays() -> None:
    judge = EchoJudge(RATE_HZ, RATE_HZ)
    assert not judge.listens(0.0, T, float("-inf"))
    judge.played(bytes(3200), T, T)
    assert judge.listens(0.5, T, T + 0.1)
    assert not judge.listens(2.0, T, T + 0.1)


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
    room.judge.listens(1.0, T, T + 1.0)
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
    assert len(judge._waiting) < 25


def test_a_delay_that_was_not_found_for_long_is_forgotten() -> None:
    room = Room(speech(4, 1))
    list(room.hear(0.1))
    assert room.judge._lag is not None
    judge, answer = room.judge, speech(3, 9)
    judge.played(pcm(answer), T + 60, T + 60)
    frame = AudioFrame(pcm(speech(1, 4)), RATE_HZ, 60 * RATE_HZ)
    judge.is_echo(frame, T)
    assert judge._lag is None
