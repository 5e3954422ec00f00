from __future__ import annotations

import msgspec
import pytest

from duologue.engines.runners.diffusion.settings import DiffusionSettings


@pytest.mark.parametrize(
    "raw",
    [
        {},
        {"folder": "x", "slices": 1},
        {"folder": "x", "max_batch": 0},
        {"folder": "x", "vae_tile": 256},
        {"folder": "x", "vae_tile": 100, "vae_tiling": True},
        {"folder": "x", "vae_tile": -64, "vae_tiling": True},
    ],
)
def test_what_is_missing_unknown_or_out_of_bounds_is_refused(raw: dict[str, object]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(raw, DiffusionSettings)


def test_a_folder_is_all_that_is_needed() -> None:
    assert msgspec.convert({"folder": "x"}, DiffusionSettings).device == "cpu"
