"""Sizes that follow from settings and memory."""

from __future__ import annotations

import pytest

from duologue.core.errors import ConfigError
from duologue.engines.runners.streaming_lm.settings import StreamingLmSettings, engine_limits

pytestmark = pytest.mark.torch


def settings(**changes: object) -> StreamingLmSettings:
    return StreamingLmSettings(
        **{"network": "moshi", "weights": "", "codec": "", "tokenizer": "", **changes}  # type: ignore[arg-type]
    )


def test_without_a_bound_on_memory_everybody_gets_a_whole_window() -> None:
    limits = engine_limits(settings(max_sessions=20), 3000, None)
    assert limits.slots == 20
    assert limits.pages.pages == 20 * 95
    assert limits.buckets == (1, 2, 4, 8, 16, 20)


def test_memory_bounds_how_many_calls_there_are() -> None:
    assert engine_limits(settings(), 3000, 80 * 95 + 50).slots == 80
    assert engine_limits(settings(mean_frames=1500, max_sessions=512), 3000, 80 * 95).slots == 158


def test_there_are_pages_for_one_call_at_least() -> None:
    limits = engine_limits(settings(max_sessions=1, mean_frames=16), 3000, None)
    assert limits.pages.pages >= 95
    with pytest.raises(ConfigError, match=r"room for 100 pages.*needs 95"):
        engine_limits(settings(), 3000, 100)
