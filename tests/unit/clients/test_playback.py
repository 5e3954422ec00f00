from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from duologue.clients.playback import ClockSpeaker, Cut, Playback
from duologue.core.errors import LimitExceeded

RATE_HZ = 1000
"""A sample a millisecond keeps the arithmetic readable."""


def pcm(samples: int, value: int = 1) -> bytes:
    return value.to_bytes(2, "little") * samples


def test_speech_is_taken_in_order_and_then_comes_silence() -> None:
    playback = Playback(RATE_HZ)
    playback.put("a", 0, pcm(3, 1))
    playback.put("b", 0, pcm(2, 2))
    taken = playback.take(8)
    assert taken.pcm == pcm(3, 1) + pcm(2, 2) + pcm(3, 0)
    assert taken.runs == (("a", 3), ("b", 2), (None, 3))
    assert (playback.heard_samples("a"), playback.heard_samples("b")) == (3, 2)


def test_a_cut_says_what_was_heard_of_each_item() -> None:
    playback = Playback(RATE_HZ)
    playback.put("a", 0, pcm(100))
    playback.put("b", 1, pcm(50))
    playback.take(30)
    assert playback.silence() == [Cut("a", 0, 30, 70), Cut("b", 1, 0, 50)]
    assert playback.waiting_samples == 0
    assert playback.take(10).pcm == pcm(10, 0)


def test_what_sounded_is_what_was_taken_less_what_the_loudspeaker_still_holds() -> None:
    playback = Playback(RATE_HZ)
    playback.put("a", 0, pcm(100))
    playback.put("b", 0, pcm(50))
    assert playback.sounded() == {}
    playback.take(120)
    assert playback.sounded() == {"a": 100, "b": 20}
    assert playback.sounded(30) == {"a": 90, "b": 0}
    assert playback.sounded(500) == {"a": 0, "b": 0}
    playback.finish("a")
    playback.silence()
    assert playback.sounded() == {"a": 100}


def test_what_the_loudspeaker_threw_away_was_not_heard() -> None:
    playback = Playback(RATE_HZ)
    playback.put("a", 0, pcm(100))
    playback.put("b", 0, pcm(100))
    playback.finish("a")
    playback.take(60)
    playback.take(60)
    assert playback.silence(unplayed_samples=30) == [Cut("a", 0, 90, 10), Cut("b", 0, 0, 100)]


def test_an_item_that_was_heard_to_its_end_is_not_cut() -> None:
    playback = Playback(RATE_HZ)
    playback.put("a", 0, pcm(10))
    playback.finish("a")
    playback.take(10)
    assert playback.silence() == []


def test_an_item_of_which_more_was_to_come_is_cut_where_it_stands() -> None:
    playback = Playback(RATE_HZ)
    playback.put("a", 0, pcm(10))
    playback.take(10)
    assert playback.silence() == [Cut("a", 0, 10, 0)]


def test_an_item_is_cut_once_and_takes_no_more_speech() -> None:
    playback = Playback(RATE_HZ)
    playback.put("a", 0, pcm(10))
    playback.silence()
    playback.put("a", 0, pcm(10))
    assert playback.is_cut("a")
    assert playback.waiting_samples == 0
    assert playback.silence() == []


def test_more_than_there_is_room_for_is_refused_whole() -> None:
    playback = Playback(RATE_HZ, capacity_s=0.1)
    playback.put("a", 0, pcm(90))
    with pytest.raises(LimitExceeded, match="110 ms of speech would wait, the limit is 100 ms"):
        playback.put("a", 0, pcm(20))
    assert playback.waiting_samples == 90


def test_silence_inside_an_answer_is_a_gap_once_it_goes_on() -> None:
    playback = Playback(RATE_HZ)
    playback.put("a", 0, pcm(10))
    playback.take(25)
    assert playback.gap_samples == 0
    playback.put("a", 0, pcm(10))
    assert playback.gap_samples == 15


def test_silence_after_an_answer_is_no_gap() -> None:
    playback = Playback(RATE_HZ)
    playback.put("a", 0, pcm(10))
    playback.take(25)
    playback.finish("a")
    playback.take(25)
    playback.put("b", 0, pcm(10))
    assert playback.gap_samples == 0


def test_old_items_are_forgotten_but_not_those_that_wait() -> None:
    playback = Playback(RATE_HZ)
    playback.put("first", 0, pcm(1))
    for number in range(200):
        playback.put(f"item {number}", 0, b"")
    assert playback.received_samples("first") == 1
    assert playback.received_samples("item 0") == 0
    assert not playback.is_finished("item 0")


def test_what_speaks_is_the_oldest_that_has_not_ended() -> None:
    playback = Playback(RATE_HZ)
    assert playback.speaking is None
    playback.put("a", 0, pcm(10))
    playback.take(10)
    assert playback.speaking == "a"
    playback.finish("a")
    assert playback.speaking is None


class PlaybackModel(RuleBasedStateMachine):
    """No sample is lost, doubled, or heard after its item was cut."""

    def __init__(self) -> None:
        super().__init__()
        self.playback = Playback(RATE_HZ, capacity_s=0.5)
        self.received: dict[str, int] = {}
        self.heard: dict[str, int] = {}
        self.cut: set[str] = set()

    @rule(item=st.sampled_from("abc"), samples=st.integers(0, 200))
    def speech_comes(self, item: str, samples: int) -> None:
        try:
            self.playback.put(item, 0, pcm(samples))
        except LimitExceeded:
            return
        if item not in self.cut:
            self.received[item] = self.received.get(item, 0) + samples

    @rule(samples=st.integers(0, 300))
    def loudspeaker_takes(self, samples: int) -> None:
        taken = self.playback.take(samples)
        assert len(taken.pcm) == 2 * samples
        assert sum(count for _, count in taken.runs) == samples
        for item, count in taken.runs:
            if item is not None:
                assert item not in self.cut
                self.heard[item] = self.heard.get(item, 0) + count

    @rule(item=st.sampled_from("abc"))
    def all_came(self, item: str) -> None:
        self.playback.finish(item)

    @rule(unplayed=st.integers(0, 100))
    def interruption(self, unplayed: int) -> None:
        for cut in self.playback.silence(unplayed):
            assert cut.item_id not in self.cut
            heard = self.heard.get(cut.item_id, 0)
            assert heard - unplayed <= cut.heard_samples <= heard
            assert cut.heard_samples + cut.unheard_samples == self.received[cut.item_id]
            self.cut.add(cut.item_id)

    @invariant()
    def what_waits_was_received_and_not_heard(self) -> None:
        waiting = sum(
            count - self.heard.get(item, 0)
            for item, count in self.received.items()
            if item not in self.cut
        )
        assert self.playback.waiting_samples == waiting


TestPlayback = PlaybackModel.TestCase


def test_the_clock_speaker_plays_at_the_rate_of_the_samples() -> None:
    playback = Playback(RATE_HZ)
    speaker = ClockSpeaker(playback)
    speaker.let_pass(10.0)
    playback.put("a", 0, pcm(100))
    assert speaker.empty_at(10.0) == pytest.approx(10.1)
    speaker.let_pass(10.03)
    assert playback.heard_samples("a") == 30
    speaker.let_pass(10.5)
    assert playback.heard_samples("a") == 100


def test_the_clock_speaker_begins_with_what_comes_when_it_comes() -> None:
    playback = Playback(RATE_HZ)
    speaker = ClockSpeaker(playback)
    speaker.let_pass(0.0)
    speaker.let_pass(50.0)
    playback.put("a", 0, pcm(100))
    speaker.let_pass(50.01)
    assert playback.heard_samples("a") == 10


def test_the_clock_speaker_hears_a_gap() -> None:
    playback = Playback(RATE_HZ)
    speaker = ClockSpeaker(playback)
    speaker.let_pass(0.0)
    playback.put("a", 0, pcm(10))
    speaker.let_pass(0.03)
    playback.put("a", 0, pcm(10))
    assert playback.gap_samples == pytest.approx(20, abs=1)


@given(st.lists(st.floats(0.0, 0.5), max_size=20))
def test_how_often_the_clock_is_looked_at_changes_nothing(steps: list[float]) -> None:
    often, once = Playback(RATE_HZ), Playback(RATE_HZ)
    speakers = ClockSpeaker(often), ClockSpeaker(once)
    for playback, speaker in zip((often, once), speakers, strict=True):
        speaker.let_pass(0.0)
        playback.put("a", 0, pcm(10_000))
    now = 0.0
    for step in steps:
        now += step
        speakers[0].let_pass(now)
    speakers[1].let_pass(now)
    assert abs(often.heard_samples("a") - once.heard_samples("a")) <= 1


def test_what_is_missing_counts_as_heard_once_the_sound_behind_it_is() -> None:
    playback = Playback(rate_hz=1000)
    playback.put("a", 0, bytes(2 * 10))
    playback.resume_at({"a": 25})
    playback.take(10)
    assert playback.heard_samples("a") == 10
    assert playback.put("a", 0, bytes(2 * 10)) == 15
    assert playback.received_samples("a") == 35
    playback.take(4)
    assert playback.heard_samples("a") == 29
    # The loudspeaker threw away what it had taken of the sound behind the hole.
    assert playback.sounded(3) == {"a": 26}
    assert playback.sounded(4) == {"a": 10}
    assert playback.silence(4) == [Cut("a", 0, 10, 25)]


def test_of_what_was_cut_or_goes_on_without_a_hole_nothing_is_missing() -> None:
    playback = Playback(rate_hz=1000)
    playback.put("cut", 0, bytes(2 * 10))
    playback.silence()
    playback.put("whole", 0, bytes(2 * 10))
    playback.resume_at({"cut": 90, "whole": 10, "new": 5})
    assert playback.put("cut", 0, bytes(2 * 10)) == 0
    assert playback.put("whole", 0, bytes(2 * 10)) == 0
    assert playback.put("new", 0, bytes(2 * 10)) == 5
    assert playback.received_samples("cut") == 10
    # The next gap says it anew.
    playback.resume_at({"other": 5})
    playback.resume_at({})
    assert playback.put("other", 0, bytes(2 * 10)) == 0
