from __future__ import annotations

import pytest

from duologue.protocol.response_events import AudioDelta
from duologue.protocol.session_config import ServerVad
from duologue.sessions.hearing.floor import FloorState
from duologue.sessions.hearing.soft_pause import SoftPause
from tests.unit.sessions.listening_bench import Bench as Ears
from tests.unit.sessions.speaking_bench import Bench as Mouth
from tests.unit.sessions.speaking_bench import T

LONGEST_S = 0.5


class Bench:
    def __init__(self) -> None:
        self.ears, self.mouth = Ears(ServerVad()), Mouth()
        self.listening, self.speaking = self.ears.listening, self.mouth.speaking
        self.pause = SoftPause(self.speaking, self.listening, int(LONGEST_S * 1000))

    def overlap(self, *, confirmed: bool = False) -> None:
        self.ears.begin(0, confirm=confirmed)
        self.listening.floor.state = FloorState.SPEAKING

    def weigh(self, now: float = T, *, answering: bool = True) -> float:
        self.pause.weigh(answering, now)
        return self.speaking.pacing.held_until


def test_an_overlap_that_is_not_decided_holds_the_answer_for_a_while() -> None:
    bench = Bench()
    assert bench.weigh() == float("-inf")
    bench.overlap()
    assert bench.weigh() == T + LONGEST_S
    # Each further window changes nothing.
    assert bench.weigh(T + 0.3) == T + LONGEST_S


@pytest.mark.parametrize("end", ["confirmed", "abandoned", "silent", "nobody answers"])
def test_it_goes_on_when_it_is_decided(end: str) -> None:
    bench = Bench()
    bench.overlap()
    bench.weigh()
    match end:
        case "confirmed":
            bench.listening.confirm(bench.listening.turn)  # type: ignore[arg-type]
        case "abandoned":
            bench.listening.abandon()
        case "silent":
            bench.listening.floor.state = FloorState.PAUSING
        case _:
            assert bench.weigh(T + 0.1, answering=False) == float("-inf")
    assert bench.weigh(T + 0.1, answering=end != "nobody answers") == float("-inf")


def test_one_sound_holds_it_once() -> None:
    bench = Bench()
    bench.overlap()
    bench.weigh()
    bench.listening.floor.state = FloorState.PAUSING
    bench.weigh(T + 0.1)
    bench.listening.floor.state = FloorState.SPEAKING
    assert bench.weigh(T + 0.2) == float("-inf")
    bench.listening.abandon()
    bench.overlap()
    assert bench.weigh(T + 0.3) == T + 0.3 + LONGEST_S


def test_a_turn_that_is_confirmed_at_once_holds_nothing() -> None:
    bench = Bench()
    bench.overlap(confirmed=True)
    assert bench.weigh() == float("-inf")


def test_speech_that_is_held_goes_out_in_its_time_and_whole() -> None:
    bench = Bench()
    response = bench.mouth.begin()
    bench.speaking.say_audio(response, b"\x01\x00" * 2400, (), T)
    bench.overlap()
    bench.weigh()
    held = [event for event in bench.speaking.pull(T, 1 << 20) if isinstance(event, AudioDelta)]
    assert held == []
    assert not bench.speaking.has_output()
    assert bench.speaking.pacing.paced_until == T + LONGEST_S
    bench.listening.abandon()
    bench.weigh(T + 0.1)
    assert bench.speaking.has_output()
    (delta,) = bench.speaking.pull(T + 0.1, 1 << 20)
    assert isinstance(delta, AudioDelta)
    assert delta.delta == b"\x01\x00" * 2400
