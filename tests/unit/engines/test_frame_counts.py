from __future__ import annotations

from duologue.engines.frame_counts import FRAME_COUNTS, NO_FRAMES, FrameCounts
from duologue.telemetry.metrics import FRAME_KINDS


def test_the_messages_and_the_figures_count_the_same_things() -> None:
    assert FRAME_COUNTS == FRAME_KINDS


def test_what_came_since_is_the_difference() -> None:
    before = FrameCounts(frames=10, dropped_samples=5)
    after = FrameCounts(frames=13, dropped_samples=5, late_frames=1)
    assert after.since(before) == FrameCounts(frames=3, late_frames=1)
    assert after.since(NO_FRAMES) == after


def test_what_is_handed_on_stays_as_it_was() -> None:
    counters = FrameCounts(frames=1)
    handed_on = counters.now()
    counters.add(FrameCounts(frames=2, moves=1))
    assert handed_on == FrameCounts(frames=1)
    assert counters.now() == FrameCounts(frames=3, moves=1)
