from __future__ import annotations

import pytest

from duologue.codecs.mimi import MimiConfig

pytestmark = pytest.mark.torch


def test_the_published_network_has_frames_of_80_ms() -> None:
    config = MimiConfig()
    assert config.frame_samples == 1920
    assert config.sample_rate_hz / config.frame_samples == 12.5
    assert config.head_dimension == 64


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"codebooks": 33}, "codebooks is 33, must be 2 to 32"),
        ({"codebooks": 1}, "codebooks is 1, must be 2 to 32"),
        ({"heads": 3}, "dimension 512 must be a multiple of twice the 3 heads"),
        ({"filters": 63}, "filters 63 must be a multiple of 2"),
    ],
)
def test_sizes_that_do_not_fit_together_are_refused(sizes: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MimiConfig(**sizes)
