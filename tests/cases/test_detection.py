"""C38 to C42: detectors, with the real energy detector behind a call."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import cycle, repeat

import numpy as np
import pytest
from numpy.typing import NDArray
from structlog.testing import capture_logs

from duologue.duplex_plugins.contract import ResponseRequested
from duologue.engines.payloads import Payload
from duologue.engines.runners.contract import Job
from duologue.engines.runners.vad.energy import EnergyVadSettings, build
from duologue.protocol.append_audio import AppendAudio
from duologue.protocol.audio_formats import FormatPatch
from duologue.protocol.commands import CommitAudio
from duologue.protocol.events import AudioCommitted, ErrorEvent, SpeechStarted, SpeechStopped
from tests.cases.talk import DETECTING, Talk, join, listening, speech
from tests.fakes.engine import FakeEngine
from tests.fakes.plugin import STAGE

FRAME_MS = 20
"""One window of the detector."""


class Detector:
    """A script for the fake engine: the real runner, stepped until it has nothing more to say."""

    def __init__(self, threshold_dbfs: float) -> None:
        self.runner = build(EnergyVadSettings(threshold_dbfs=threshold_dbfs, window_ms=FRAME_MS))
        self.job = Job("vad")
        self.runner.open(self.job)

    def __call__(self, payload: Payload) -> Sequence[Payload]:
        self.job.inputs.append(payload)
        outputs: list[Payload] = []
        while self.runner.ready(self.job):
            (step,) = self.runner.step([self.job])
            assert step.error is None
            outputs += step.outputs
        return outputs


class Listener(Talk):
    """A call that is heard by a real detector."""

    def __init__(self, rate_hz: int, threshold_dbfs: float = -45.0) -> None:
        super().__init__(DETECTING)
        self.engine.answers["vad"] = Detector(threshold_dbfs)
        self.rate_hz = rate_hz
        self.send(listening(format=FormatPatch(rate=rate_hz)))

    def hear(self, wire: bytes, sizes: Iterator[int], speed: float | None = 1.0) -> None:
        """Send audio in messages of these sizes, in bytes; ``None``: without any time passing."""
        start = 0
        while start < len(wire):
            piece = wire[start : start + next(sizes)]
            start += len(piece)
            if speed is not None:
                self.clock.advance(len(piece) / 2 / self.rate_hz / speed)
            self.send(AppendAudio(audio=piece))
            self.engine.deliver()

    def edges(self) -> list[tuple[int, int]]:
        """Where each turn began (without padding) and ended, in milliseconds."""
        starts = [event.audio_start_ms for event in self.client.of(SpeechStarted)]
        stops = [event.audio_end_ms for event in self.client.of(SpeechStopped)]
        return list(zip(starts, stops, strict=True))


def samples(rate_hz: int, ms: int) -> int:
    return rate_hz * ms // 1000


def voice(rate_hz: int, ms: int, dbfs: float = -20.0) -> NDArray[np.float64]:
    """A buzz with the level of speech."""
    time = np.arange(samples(rate_hz, ms)) / rate_hz
    return np.asarray(10 ** (dbfs / 20) * np.sqrt(2) * np.sin(2 * np.pi * 220 * time))


def noise(rate_hz: int, ms: int, dbfs: float) -> NDArray[np.float64]:
    """A fan."""
    return 10 ** (dbfs / 20) * np.random.default_rng(1).standard_normal(samples(rate_hz, ms))


def quiet(rate_hz: int, ms: int) -> NDArray[np.float64]:
    return np.zeros(samples(rate_hz, ms))


def wire(*parts: NDArray[np.float64]) -> bytes:
    scaled = np.clip(np.concatenate(parts), -1, 1) * 32767
    return scaled.astype("<i2").tobytes()


UTTERANCES = ((1000, 1400), (3200, 1000), (5600, 2200), (9400, 900))
"""Beginning and length, in a recording of twelve seconds."""


def recording(rate_hz: int) -> bytes:
    parts: list[NDArray[np.float64]] = []
    at = 0
    for start, length in UTTERANCES:
        parts += [quiet(rate_hz, start - at), voice(rate_hz, length)]
        at = start + length
    return wire(*parts, quiet(rate_hz, 12_000 - at))


def check_four_turns(edges: list[tuple[int, int]]) -> None:
    assert len(edges) == 4
    for (started, stopped), (start, length) in zip(edges, UTTERANCES, strict=True):
        assert abs(started - max(0, start - 300)) <= 1.5 * FRAME_MS
        assert abs(stopped - (start + length)) <= 1.5 * FRAME_MS


def chunks(name: str, rate_hz: int) -> Iterator[int]:
    """Sizes of messages, in bytes; odd ones split samples."""
    match name:
        case "random":
            chance = random.Random(3)
            return iter(lambda: chance.randrange(1, 9000), 0)
        case "odd":
            return cycle((4063, 1697))
        case _:
            return repeat(2 * samples(rate_hz, int(name)))


@pytest.mark.parametrize("rate_hz", [8000, 16000, 24000, 48000])
@pytest.mark.parametrize("name", ["7", "20", "32", "250", "random", "odd"])
def test_c38_the_same_turns_are_found_however_the_audio_is_cut(name: str, rate_hz: int) -> None:
    talk = Listener(rate_hz)
    talk.hear(recording(rate_hz), chunks(name, rate_hz))
    check_four_turns(talk.edges())
    check_same(talk.edges(), usual_edges())
    talk.close()


@cache
def usual_edges() -> list[tuple[int, int]]:
    """Where the turns are, at 24 kHz in messages of 20 ms."""
    talk = Listener(24_000)
    talk.hear(recording(24_000), chunks("20", 24_000))
    talk.close()
    return talk.edges()


def check_same(edges: list[tuple[int, int]], others: list[tuple[int, int]]) -> None:
    for these, those in zip(edges, others, strict=True):
        assert all(abs(a - b) <= FRAME_MS for a, b in zip(these, those, strict=True))


@pytest.mark.parametrize("rate_hz", [8000, 16000, 24000, 48000])
def test_c38_the_whole_recording_may_come_in_one_message(rate_hz: int) -> None:
    talk = Listener(rate_hz)
    talk.hear(recording(rate_hz), repeat(1 << 24), speed=None)
    for _ in range(20):
        talk.clock.advance(0.1)
        talk.engine.deliver()
    check_four_turns(talk.edges())
    check_same(talk.edges(), usual_edges())
    talk.close()


@pytest.mark.parametrize("rate_hz", [8000, 16000, 24000, 48000])
def test_c38_single_samples_give_the_turns_of_one_message(rate_hz: int) -> None:
    heard = []
    for size in (2, 16_000):
        talk = Listener(rate_hz)
        short = wire(quiet(rate_hz, 300), voice(rate_hz, 400), quiet(rate_hz, 600))
        talk.hear(short, repeat(size))
        heard.append(talk.edges())
        # However small the pieces are, the detector is troubled once a millisecond at most.
        assert len(talk.engine.only("vad").inputs) <= 1300
        talk.close()
    assert len(heard[0]) == 1
    assert heard[0] == heard[1]


@pytest.mark.parametrize("speed", [10.0, 0.5])
def test_c39_turns_are_found_in_audio_time_at_any_speed(speed: float) -> None:
    talk = Listener(24000)
    talk.hear(recording(24000), chunks("20", 24000), speed)
    check_four_turns(talk.edges())
    talk.close()


def test_c39_a_gap_in_the_network_is_no_silence() -> None:
    talk = Listener(24000)
    sizes = chunks("20", 24000)
    talk.hear(wire(quiet(24000, 500), voice(24000, 600)), sizes)
    talk.clock.advance(3)
    assert talk.client.of(SpeechStopped) == []
    talk.hear(wire(voice(24000, 600), quiet(24000, 800)), sizes)
    (edge,) = talk.edges()
    assert abs(edge[1] - 1700) <= 1.5 * FRAME_MS
    talk.close()


def test_c39_a_client_that_stays_away_has_ended_its_turn() -> None:
    talk = Listener(24000)
    talk.hear(wire(quiet(24000, 500), voice(24000, 600)), chunks("20", 24000))
    talk.clock.advance(5.1)
    assert len(talk.client.of(AudioCommitted)) == 1
    talk.close()


FAN_DBFS = -40.0
ABOVE_THE_FAN_DBFS = -33.0


def test_c41_a_short_word_is_heard_in_quiet_and_over_a_fan() -> None:
    yes = voice(16000, 200, -26.0)
    for background in (quiet(16000, 2000), noise(16000, 2000, FAN_DBFS)):
        talk = Listener(16000, ABOVE_THE_FAN_DBFS)
        sound = background.copy()
        sound[8000 : 8000 + len(yes)] += yes
        talk.hear(wire(sound), chunks("20", 16000))
        assert len(talk.client.of(AudioCommitted)) == 1
        assert len(talk.plugin.of(ResponseRequested)) == 1
        talk.close()


def test_c41_a_fan_alone_is_nobody() -> None:
    talk = Listener(16000, ABOVE_THE_FAN_DBFS)
    minute = wire(noise(16000, 60_000, FAN_DBFS))
    for _ in range(5):
        talk.hear(minute, chunks("250", 16000))
    assert talk.client.of(SpeechStarted) == []
    talk.close()


def test_c42_a_detector_that_fails_leaves_audio_commits_and_other_calls_alone() -> None:
    talk = Talk(DETECTING)
    other = join(talk)
    talk.hush(2)
    other.session.offer(speech(64))
    mine, theirs = talk.engine.of("vad")
    with capture_logs() as logs:
        talk.engine.fail(mine.request.id, "stage_failed")
        talk.send(speech(600), CommitAudio())
    assert [log["part"] for log in logs if log["event"] == "listening_failed"] == ["detector"]
    assert talk.metrics.listening_failed["detector"].value == 1
    assert len(talk.client.of(AudioCommitted)) == 1
    assert talk.client.of(ErrorEvent) == []
    recogniser_input = talk.machine.listening.audio.next_sample
    assert recogniser_input == pytest.approx(664 * 16, abs=100)
    other.session.offer(speech(64))
    assert len(theirs.inputs) == 2
    assert not theirs.cancelled
    # After a while another detector is tried, and turns are found again.
    talk.say(70)
    talk.hush(20)
    assert len(talk.client.of(SpeechStopped)) == 1
    # One that fails over and over, as where there is no worker left, is told once.
    for _ in range(3):
        (again,) = [each for each in talk.engine.of("vad") if each is not theirs]
        talk.engine.fail(again.request.id, "replica_lost")
        talk.send(*[speech(100)] * 25)
    assert talk.metrics.listening_failed["detector"].value == 2
    other.session.close("closed")
    talk.close()


def test_c42_without_any_detector_the_call_is_held_by_hand() -> None:
    talk = Talk(("asr", STAGE))
    assert isinstance(talk.engine, FakeEngine)
    talk.send(listening(turn_detection=None))
    talk.probe()
    talk.close()
