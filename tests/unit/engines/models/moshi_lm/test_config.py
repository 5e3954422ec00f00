from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from duologue.engines.models.moshi_lm.config import MOSHI, PERSONAPLEX, tiny

pytestmark = pytest.mark.torch


def test_the_defaults_are_the_published_sizes() -> None:
    assert (MOSHI.head_dimension, MOSHI.depth_head_dimension, MOSHI.streams) == (128, 64, 17)
    assert (MOSHI.text_initial, MOSHI.audio_initial) == (32_000, 2048)


def test_personaplex_sees_one_frame_less() -> None:
    assert replace(PERSONAPLEX, window=3000) == MOSHI
    assert PERSONAPLEX.window == 2999


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dimension": 4000}, "dimension 4000 must be a multiple of twice its 32 heads"),
        ({"depth_dimension": 1000}, "depth_dimension 1000"),
        ({"window": 0}, "window is 0 frames"),
        ({"codebooks": 1}, "codebooks is 1, must be at least 2"),
        ({"delays": (0, 1)}, "there must be 8"),
        ({"delays": (0, 2, 1, 1, 1, 1, 1, 1)}, "each 0 or 1"),
        ({"delays": (1,) * 8}, "the first 0"),
        ({"silence": (1,) * 7}, "silence must be 8 codes"),
        ({"sine": (2048,) * 8}, "codes below 2048"),
    ],
)
def test_sizes_that_fit_no_network_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(MOSHI, **change)


def test_a_tiny_network_has_all_parts() -> None:
    small = tiny(codebooks=2, audio_card=10, silence=(1, 2), sine=(3, 4))
    assert small.delays == (0, 1)
    assert small.streams == 5
