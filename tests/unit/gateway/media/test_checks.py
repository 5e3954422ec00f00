from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from duologue.core.errors import ClientError, LimitExceeded
from duologue.engines.media_offer import MediaOffer
from duologue.gateway.media import checks

OFFER = MediaOffer(
    serves=("images",),
    width=640,
    height=480,
    max_side=1024,
    max_pixels=640 * 480,
    max_total_pixels=2 * 640 * 480,
    max_prompt_chars=10,
)


@pytest.mark.parametrize(
    ("given", "size"), [(None, (640, 480)), ("auto", (640, 480)), ("320x160", (320, 160))]
)
def test_sizes(given: str | None, size: tuple[int, int]) -> None:
    assert checks.size_of(given, OFFER) == size


@pytest.mark.parametrize(
    ("check", "param"),
    [
        (lambda: checks.size_of("large", OFFER), "size"),
        (lambda: checks.size_of("321x160", OFFER), "size"),
        (lambda: checks.size_of("\u0663\u0662\u0660x160", OFFER), "size"),  # Arabic digits
        (lambda: checks.size_of("0x160", OFFER), "size"),
        (lambda: checks.size_of("1040x16", OFFER), "size"),
        (lambda: checks.size_of("640x640", OFFER), "size"),
        (lambda: checks.check_total(640 * 480 * 2 + 1, OFFER, "n"), "n"),
        (lambda: checks.check_prompt(" ", OFFER), "prompt"),
        (lambda: checks.check_prompt("eleven char", OFFER), "prompt"),
        (lambda: checks.steps_of(101, OFFER), "num_inference_steps"),
        (lambda: checks.steps_of(0, OFFER), "num_inference_steps"),
        (lambda: checks.guidance_of(-1, OFFER), "guidance_scale"),
        (lambda: checks.seed_of(-1, 5), "seed"),
        (lambda: checks.sound_s_of(0, 1, OFFER), "seconds"),
        (lambda: checks.sound_s_of(47.1, 1, OFFER), "seconds"),
        (lambda: checks.sound_s_of(None, 13, OFFER), "n"),
        (lambda: checks.count_of(11), "n"),
        (lambda: checks.partials_of(4), "partial_images"),
        (lambda: checks.quality_of(101), "output_compression"),
        (lambda: checks.strength_of(0), "strength"),
        (lambda: checks.media_of("gif"), "output_format"),
        (lambda: checks.check_background("transparent"), "background"),
    ],
)
def test_what_is_out_of_bounds_names_its_field(check: Callable[[], Any], param: str) -> None:
    with pytest.raises(ClientError) as refused:
        check()
    assert refused.value.param == param


def test_a_size_beyond_all_measure_is_refused_with_the_limit() -> None:
    with pytest.raises(LimitExceeded, match="1024"):
        checks.size_of("100000x10000", OFFER)


def test_what_is_not_said_is_the_models_own() -> None:
    assert checks.steps_of(None, OFFER) == OFFER.steps
    assert checks.guidance_of(None, OFFER) == OFFER.guidance
    assert checks.seed_of(None, 5) == 5
    assert checks.media_of(None) == "png"
    assert checks.check_background(None) == "auto"
    assert checks.sound_s_of(None, 1, OFFER) == OFFER.sound_s
