from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from duologue.engines.models.moshi_lm.config import MOSHI, tiny
from duologue.engines.models.moshi_lm.layout import Layout

pytestmark = pytest.mark.torch

GOLDEN = Path(__file__).parents[4] / "golden/moshi_lm/personaplex/tensors.json"


def test_the_fused_layout_has_the_names_and_shapes_that_were_published() -> None:
    published = {name: tuple(shape) for name, shape in json.loads(GOLDEN.read_text())["tensors"]}
    assert Layout("fused", 16).shapes(tiny()) == published


def test_the_true_sizes_have_the_published_number_of_weights() -> None:
    for steps, weights in ((8, 7_687_729_152), (16, 8_371_408_896)):
        shapes = Layout("fused", steps).shapes(MOSHI)
        assert sum(math.prod(shape) for shape in shapes.values()) == weights


def test_both_layouts_hold_as_many_weights() -> None:
    fused, per_step = (Layout(a, 8).shapes(tiny()) for a in ("fused", "per_step"))
    assert len(per_step) > len(fused)
    assert sum(map(math.prod, per_step.values())) == sum(map(math.prod, fused.values()))


@pytest.mark.parametrize("layout", [Layout("fused", 16), Layout("per_step", 8)])
def test_a_layout_is_recognised_by_its_names(layout: Layout) -> None:
    assert Layout.of(layout.shapes(tiny())) == layout


def test_names_of_something_else_have_no_steps() -> None:
    assert Layout.of(["encoder.weight"]).steps == 0
