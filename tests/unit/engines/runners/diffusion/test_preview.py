from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import diffusers
import numpy as np
import pytest
import torch

from duologue.engines.runners.diffusion.preview import decoded, shown_at

pytestmark = pytest.mark.diffusion


@pytest.mark.parametrize(
    ("steps", "partials", "wanted"),
    [
        (8, 3, {1: 0, 3: 1, 5: 2}),
        (28, 1, {13: 0}),
        (2, 3, {0: 0}),
        (1, 2, {}),
        (4, 0, {}),
    ],
)
def test_views_are_spread_over_the_steps_but_the_last(
    steps: int, partials: int, wanted: dict[int, int]
) -> None:
    assert shown_at(steps, partials) == wanted


@pytest.mark.parametrize("name", ["sd3", "flux", "qwenimage"])
def test_the_latents_of_the_last_step_look_like_the_image(
    name: str, tiny: Callable[[str], Path]
) -> None:
    pipe = diffusers.DiffusionPipeline.from_pretrained(tiny(name))
    pipe.set_progress_bar_config(disable=True)
    last: list[torch.Tensor] = []

    def keep(_pipe: Any, _step: int, _time: Any, tensors: dict[str, Any]) -> dict[str, Any]:
        last[:] = [tensors["latents"]]
        return tensors

    made = pipe(
        "a cat",
        width=64,
        height=48,
        num_inference_steps=2,
        generator=torch.Generator().manual_seed(0),
        output_type="np",
        callback_on_step_end=keep,
    ).images

    assert np.allclose(decoded(pipe, last[0], 64, 48), made, atol=1e-6)
