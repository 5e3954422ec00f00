"""The beat, with a clock that the test moves."""

from __future__ import annotations

import numpy as np
import pytest

from duologue.engines.arbiter.device_arbiter import IDLE, Beat
from duologue.engines.runners.streaming_lm.prepared import Costs
from duologue.engines.runners.streaming_lm.tick_loop import (
    MAX_WAITING_FRAMES,
    STARVED_TICKS,
    TELL_EVERY_S,
    Freeze,
    Hear,
    Join,
    Leave,
    Outlet,
    Rewind,
    Taken,
    TickLoop,
)
from duologue.engines.runners.streaming_lm.ticks.frame_feed import FeedLimits
from duologue.engines.runners.streaming_lm.ticks.frame_groups import GroupPlan
from tests.unit.engines.runners.streaming_lm.tiny_network import (
    SAMPLES,
    WINDOW,
    engine,
    opening,
    persona,
)

pytestmark = pytest.mark.torch

PERIOD_S = 0.08
STEP_S = 0.02
FEED = FeedLimits(frame_samples=SAMPLES, rate_hz=600, debt_samples=2 * SAMPLES, max_slip_samples=1)


class Call:
    """A loop of two places, and a clock on which nothing takes time."""

    def __init__(
        self, groups: int = 1, prefill_s: float = 0.01, pages: int = 60, wait_s: float = 0.09
    ) -> None:
        self.now = 0.0
        self.told = 0
        self.engine = engine(slots=3, pages=pages, buckets=(3,))
        small, large = prefill_s, 3 * prefill_s
        costs = Costs({3: STEP_S}, {4: (small, small), 16: (large, large)}, WINDOW)
        plan = GroupPlan(groups, 2 // groups, wait_s)
        self.beats: list[Beat] = []
        self.loop = TickLoop(self.engine, plan, FEED, costs, 0.0, self.tell, self.beats.append)

    def tell(self) -> None:
        self.told += 1

    def join(self, key: str, seed: int = 1, tokens: int = 0) -> Outlet:
        outlet = Outlet()
        prompt = persona(tokens) if tokens else None
        self.loop.take(Join(key, opening(seed, prompt), outlet), self.now)
        return outlet

    def hear(self, key: str, level: float) -> None:
        self.loop.take(Hear(key, np.full(SAMPLES, level, np.float32), self.now), self.now)

    def run(self, until: float) -> None:
        """Do what is due up to a moment."""
        while True:
            due = self.loop.advance(self.now, lambda: self.now)
            if due is None or due > until:
                self.now = until
                return
            self.now = max(self.now, due)


def test_a_frame_comes_at_every_tick_audio_or_none() -> None:
    call = Call()
    outlet = call.join("a")
    call.run(0.01)
    call.hear("a", 0.5)
    call.run(10 * PERIOD_S + 0.01)
    assert [said.frame.frame for said in outlet.spoken] == list(range(10))
    assert call.told == 10
    assert call.loop.counters().silent_frames == 9


def test_a_tick_is_told_once_for_all_streams() -> None:
    call = Call()
    boxes = [call.join("a"), call.join("b", 2)]
    call.run(4 * PERIOD_S + 0.01)
    assert [len(box.spoken) for box in boxes] == [4, 4]
    assert call.told == 4


def test_a_prompt_is_read_between_ticks_in_chunks_that_fit() -> None:
    call = Call()
    first = call.join("a")
    call.run(0.07)
    second = call.join("b", 2, tokens=9)
    # Neither chunk is done before the tick of the first stream.
    call.run(0.075)
    assert call.engine.waiting == 13
    call.run(5 * PERIOD_S + 0.01)
    assert len(first.spoken) == 5
    assert len(second.spoken) == 4


def test_where_no_prefill_ever_fits_one_is_made_all_the_same() -> None:
    call = Call(prefill_s=1.0)
    first = call.join("a")
    call.run(PERIOD_S + 0.01)
    second = call.join("b", 2, tokens=9)
    call.run((STARVED_TICKS - 1) * PERIOD_S)
    assert (len(second.spoken), call.engine.waiting) == (0, 13)
    call.run(8 * STARVED_TICKS * PERIOD_S)
    assert second.spoken
    assert first.spoken


def test_who_does_not_fit_is_told_so_and_the_others_go_on() -> None:
    call = Call()
    boxes = [call.join("a"), call.join("b"), call.join("c")]
    assert boxes[2].error is not None
    assert "holds 2 calls" in str(boxes[2].error)
    assert call.told == 1
    call.loop.take(Leave("a"), 0.0)
    call.run(PERIOD_S + 0.01)
    assert (len(boxes[0].spoken), len(boxes[1].spoken)) == (0, 1)


def test_a_frozen_stream_stands_still_and_what_it_would_hear_is_lost() -> None:
    call = Call()
    outlet = call.join("a")
    call.run(2 * PERIOD_S + 0.01)
    call.loop.take(Freeze("a", True), call.now)
    call.hear("a", 0.5)
    call.run(5 * PERIOD_S + 0.01)
    assert len(outlet.spoken) == 2
    call.loop.take(Freeze("a", False), call.now)
    call.run(7 * PERIOD_S + 0.01)
    assert [said.frame.frame for said in outlet.spoken] == [0, 1, 2, 3]
    assert call.loop.counters().dropped_samples == SAMPLES


def test_a_stream_whose_frames_nobody_takes_stands_still_until_they_are_taken() -> None:
    call = Call()
    full, other = call.join("a"), call.join("b", 2)
    call.run((MAX_WAITING_FRAMES - 1) * PERIOD_S + 0.01)
    other.spoken.clear()
    call.run((MAX_WAITING_FRAMES + 5) * PERIOD_S + 0.01)
    assert (len(full.spoken), len(other.spoken)) == (MAX_WAITING_FRAMES, 6)
    call.loop.take(Freeze("a", False), call.now)
    call.run((MAX_WAITING_FRAMES + 7) * PERIOD_S + 0.01)
    assert len(full.spoken) == MAX_WAITING_FRAMES
    full.spoken.clear()
    call.loop.take(Taken("a"), call.now)
    call.run((MAX_WAITING_FRAMES + 9) * PERIOD_S + 0.01)
    # It stood still: of its own frames none is missing.
    numbers = [said.frame.frame for said in full.spoken]
    assert numbers == [MAX_WAITING_FRAMES, MAX_WAITING_FRAMES + 1]


def test_a_stream_is_taken_back_between_two_ticks() -> None:
    call = Call()
    outlet = call.join("a")
    call.run(6 * PERIOD_S + 0.01)
    call.loop.take(Rewind("a", 3), call.now)
    call.run(8 * PERIOD_S + 0.01)
    assert [(said.frame.frame, said.rewinds) for said in outlet.spoken] == [
        *((frame, 0) for frame in range(6)),
        (6, 1),
        (7, 1),
    ]
    # Too far in the future, which changes nothing but the count.
    call.loop.take(Rewind("a", 300), call.now)
    call.run(9 * PERIOD_S + 0.01)
    assert outlet.spoken[-1].rewinds == 2


def test_news_of_a_stream_that_has_left_is_no_error() -> None:
    call = Call()
    call.join("a")
    call.loop.take(Leave("a"), 0.0)
    call.hear("a", 0.5)
    call.loop.take(Rewind("a", 0), 0.0)
    call.loop.take(Leave("a"), 0.0)
    call.run(1.0)
    assert call.loop.members == call.engine.streams == 0


def test_groups_tick_one_after_the_other() -> None:
    call = Call(groups=2)
    boxes = [call.join("a"), call.join("b")]
    call.run(PERIOD_S + 0.01)
    assert [len(box.spoken) for box in boxes] in ([1, 1], [2, 1], [1, 2])
    assert call.told == sum(len(box.spoken) for box in boxes)


@pytest.mark.parametrize(("wait_s", "in_time_s"), [(0.03, 0.05), (0.055, 0.025), (0.09, STEP_S)])
def test_a_step_must_be_done_before_the_frames_that_waited_longest_are_late(
    wait_s: float, in_time_s: float
) -> None:
    call = Call(wait_s=wait_s)
    call.join("a")
    call.run(0.01)
    assert call.beats[-1] == Beat(PERIOD_S, pytest.approx(PERIOD_S + in_time_s), STEP_S)


def test_it_says_when_the_next_step_is_and_when_one_runs() -> None:
    call = Call(groups=2, wait_s=0.03)
    call.join("a")
    call.run(0.01)
    assert call.beats[-1] == Beat(PERIOD_S, PERIOD_S + PERIOD_S / 2, STEP_S)
    call.run(PERIOD_S)
    runs, following = call.beats[-2:]
    assert runs == Beat(step_s=STEP_S, busy_until=PERIOD_S + STEP_S)
    assert following.due == 2 * PERIOD_S
    call.loop.take(Leave("a"), call.now)
    call.run(3 * PERIOD_S)
    assert call.beats[-1] == IDLE


def test_it_says_that_it_reads_a_prompt() -> None:
    call = Call()
    call.join("a", tokens=9)
    call.run(0.0)
    assert [beat.busy_until > 0.0 for beat in call.beats[:2]] == [False, True]


@pytest.mark.parametrize(("arrives_at", "tick_at"), [(0.03, 0.04), (0.07, 0.08)])
def test_a_stream_gets_the_group_whose_tick_follows_its_messages(
    arrives_at: float, tick_at: float
) -> None:
    call = Call(groups=2)
    call.now = arrives_at
    outlet = call.join("a")
    # It came while the prompt was still to be read, and says when others will come.
    call.hear("a", 0.5)
    call.run(tick_at - 0.001)
    assert not outlet.spoken
    call.run(tick_at + 0.001)
    assert len(outlet.spoken) == 1
    call.run(tick_at + PERIOD_S - 0.001)
    assert len(outlet.spoken) == 1


def test_what_is_counted_is_told_about_once_a_second() -> None:
    call = Call()
    outlet = call.join("a")
    call.run(TELL_EVERY_S - PERIOD_S)
    assert outlet.news is None
    call.run(TELL_EVERY_S + 2 * PERIOD_S)
    assert outlet.news is not None
    assert outlet.news.counts.frames == call.loop.counts.frames > 10
    assert outlet.news.counts.silent_frames == outlet.news.counts.frames
    assert outlet.news.sees_frames == 0


def test_a_stream_whose_memory_is_taken_is_told_at_once_how_much_is_left() -> None:
    call = Call(pages=11)
    outlets = [call.join("a"), call.join("b", 2)]
    call.run(29.5 * PERIOD_S)
    told = [outlet.news.sees_frames for outlet in outlets if outlet.news is not None]
    assert any(0 < seen < WINDOW for seen in told)
    assert call.loop.counters().shortened_windows > 0
    # Nothing is kept of it that nobody takes.
    assert call.engine.shortened == []
    assert all(len(outlet.spoken) == 29 for outlet in outlets)
