"""One step: where its parts come together. What streams make of it is the engine's to test."""

from __future__ import annotations

import pytest
import torch

from duologue.engines.runners.streaming_lm.frame_step import FrameStep
from duologue.engines.runners.streaming_lm.pages import PageLimits
from tests.unit.engines.runners.streaming_lm.tiny_network import CONFIG, SAMPLES, network

pytestmark = pytest.mark.torch

LIMITS = PageLimits(8, page_frames=4, window=12, chunk=4)


def snapshot(step: FrameStep) -> list[torch.Tensor]:
    state = step.state
    kept = [state.text, state.said, state.heard]
    return [*(each[:-1].clone() for each in kept), step.pool[:, 1:].clone()]


def test_masked_rows_change_nothing_but_what_belongs_to_nobody() -> None:
    step = FrameStep(network(), 2, LIMITS, torch.float32)
    step.pool.normal_()
    before = snapshot(step)
    places = torch.tensor([[2, 0, -1]] * 3, dtype=torch.int32)
    pcm, tokens = step.frame(torch.rand(3, SAMPLES), places)
    assert (pcm.shape, tokens.shape) == ((3, SAMPLES), (3, CONFIG.streams))
    assert all(torch.equal(a, b) for a, b in zip(before, snapshot(step), strict=True))


def test_a_step_speaks_the_first_code_that_was_chosen_before_and_the_later_ones_now() -> None:
    step = FrameStep(network(), 2, LIMITS, torch.float32)
    step.table[0, 0] = 1
    step.state.said[0] = torch.arange(8)
    step.state.text[0] = 9
    _, tokens = step.frame(torch.rand(1, SAMPLES), torch.tensor([[0, 0, 0]], dtype=torch.int32))
    assert tokens[0, 0] == 9
    assert tokens[0, 1] == 0
    assert torch.equal(tokens[0, 2:9], step.state.said[0, 1:])
    assert torch.equal(tokens[0, 9:], step.state.heard[0])


def test_a_page_is_copied_in_all_layers() -> None:
    step = FrameStep(network(), 2, LIMITS, torch.float32)
    step.pool.normal_()
    step.copy_page(3, 5)
    assert torch.equal(step.pool[:, 3], step.pool[:, 5])
    assert not torch.equal(step.pool[:, 3], step.pool[:, 4])
