from __future__ import annotations

from dataclasses import fields

from duologue.engines.frame_counts import FRAME_COUNTS, NO_FRAMES, FrameCounts
from duologue.engines.runners.streaming_lm.ticks.frame_feed import FrameCounters
from duologue.telemetry.metrics import FRAME_KINDS


def test_the_feeds_the_messages_and_the_figures_count_the_same_things() -> None:
    assert set(FRAME_COUNTS) == {field.name for field in fields(FrameCounters)}
    assert FRAME_COUNTS == FRAME_KINDS


def test_what_came_since_is_the_difference() -> None:
    before = FrameCounts(frames=10, dropped_samples=5)
    after = FrameCounts(frames=13, dropped_samples=5, late_frames=1)
    assert after.since(before) == FrameCounts(frames=3, late_frames=1)
    assert after.since(NO_FRAMES) == after
