from __future__ import annotations

from array import array

import pytest

from duologue.gateway.speech.first_sound import AUDIBLE, FirstSound
from duologue.telemetry import LabelSets, Metrics
from tests.fakes.clock import FakeClock

SILENCE = bytes(2 * 2400)  # 100 ms
HUM = array("h", [AUDIBLE - 1] * 2400).tobytes()
SOUND = array("h", [0] * 1200 + [-AUDIBLE] * 1200).tobytes()


class Wait:
    def __init__(self) -> None:
        self.metrics = Metrics(LabelSets(pipelines=("voice",)))
        self.clock = FakeClock()
        self.first = FirstSound(self.metrics, self.clock, "voice")

    def hears(self, *pieces: bytes, after_s: float = 0.0) -> None:
        self.clock.advance(after_s)
        for piece in pieces:
            self.first.note(piece)

    @property
    def packet_s(self) -> float:
        return self.metrics.speech_first_packet["voice"].sum

    @property
    def audible_s(self) -> float:
        return self.metrics.speech_first_audible["voice"].sum


def test_speech_that_begins_with_sound_is_heard_with_its_first_packet() -> None:
    wait = Wait()
    wait.hears(b"", after_s=0.1)
    wait.hears(SOUND[2400:], after_s=0.2)
    assert wait.packet_s == wait.audible_s == pytest.approx(0.3)


def test_silence_at_the_beginning_is_waited_for() -> None:
    wait = Wait()
    wait.hears(SILENCE, HUM, SOUND, after_s=0.2)
    assert wait.packet_s == pytest.approx(0.2)
    assert wait.audible_s == pytest.approx(0.2 + 0.25)


def test_a_sound_that_comes_later_than_the_silence_lasts_is_heard_when_it_comes() -> None:
    wait = Wait()
    wait.hears(SILENCE, after_s=0.2)
    wait.hears(SOUND[2400:], after_s=0.5)
    assert wait.audible_s == pytest.approx(0.7)


def test_each_is_counted_once_and_silence_is_never_heard() -> None:
    wait = Wait()
    wait.hears(SILENCE)
    assert sum(wait.metrics.speech_first_audible["voice"].counts) == 0
    wait.hears(SOUND, SOUND, SILENCE, SOUND)
    assert sum(wait.metrics.speech_first_audible["voice"].counts) == 1
    assert sum(wait.metrics.speech_first_packet["voice"].counts) == 1
