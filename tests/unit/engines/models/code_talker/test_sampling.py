from __future__ import annotations

import pytest
import torch

from duologue.engines.models.code_talker.sampling import Draw, Taste, less_often, within_top_p

pytestmark = pytest.mark.speech

CPU = torch.device("cpu")
SCORES = torch.tensor([[1.0, 3.0, 2.0, 0.0]])


def test_without_temperature_the_likeliest_is_taken() -> None:
    draw = Draw.of([1], [0], CPU)
    assert draw.take(SCORES, Taste(temperature=0, top_k=4), 0).tolist() == [1]


def test_a_draw_depends_on_seed_frame_and_place_alone() -> None:
    taste = Taste(temperature=2, top_k=4)
    scores = torch.randn(1, 200)

    def drawn(seed: int, frame: int, place: int, rows: int = 1) -> int:
        draw = Draw.of([seed] * rows, [frame] * rows, CPU)
        return int(draw.take(scores.expand(rows, -1), taste, place)[0])

    assert drawn(5, 7, 1) == drawn(5, 7, 1, rows=3)
    others = {drawn(5, frame, place) for frame in range(8) for place in range(8)}
    assert len(others) > 1


def test_as_many_are_left_as_have_the_chances_that_are_asked_for() -> None:
    kept = within_top_p(SCORES, Taste(temperature=1, top_k=4, top_p=0.8))
    assert torch.isfinite(kept).tolist() == [[False, True, True, False]]
    kept = within_top_p(SCORES, Taste(temperature=1, top_k=4, top_p=0.1))
    assert torch.isfinite(kept).tolist() == [[False, True, False, False]]


def test_draws_are_among_those_that_are_left() -> None:
    taste = Taste(temperature=1, top_k=4, top_p=0.8)
    draw = Draw.of(range(200), range(200), CPU)
    assert set(draw.take(SCORES.expand(200, -1), taste, 0).tolist()) == {1, 2}


def test_what_was_said_is_less_likely_whatever_its_sign() -> None:
    said = torch.tensor([[True, False, True]])
    scores = torch.tensor([[2.0, 2.0, -2.0]])
    assert less_often(scores, said, 2.0).tolist() == [[1.0, 2.0, -4.0]]
