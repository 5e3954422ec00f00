"""Weights in 8 bits: near what the wide ones give."""

from __future__ import annotations

import pytest
import torch

from duologue.engines.models.moshi_lm import temporal
from duologue.engines.runners.streaming_lm import eight_bits
from duologue.engines.runners.streaming_lm.frame_step import PagedMemory
from duologue.kernels.pages import Rows
from tests.unit.engines.runners.streaming_lm.tiny_network import CONFIG, network

pytestmark = pytest.mark.torch

ROWS = 6


def memory() -> PagedMemory:
    pool = torch.zeros(CONFIG.layers, 2, 2, CONFIG.heads, 16, CONFIG.head_dimension)
    positions = torch.arange(ROWS, dtype=torch.int32)
    zeros = torch.zeros(ROWS, dtype=torch.int32)
    table = torch.ones(1, 1, dtype=torch.int32)
    return PagedMemory(pool, Rows(table, zeros, zeros, positions))


def test_hidden_rows_are_near_those_of_wide_weights() -> None:
    weights = network().weights
    generator = torch.Generator().manual_seed(1)
    hidden = torch.randn(ROWS, CONFIG.dimension, generator=generator)
    positions = torch.arange(ROWS, dtype=torch.int32)
    exact = temporal.forward(weights, CONFIG, hidden.clone(), positions, memory())
    layers = list(weights.layers)
    narrow = eight_bits.narrow_layers(layers)
    assert not layers
    # Products in 8 bits come out in bfloat16, which the projection after them takes as it is.
    wide = [layer.out_proj for layer in narrow]
    narrow = tuple(
        eight_bits.NarrowLayer(
            each.norm1, each.in_proj, matrix.bfloat16(), each.norm2, each.gate_up, each.down
        )
        for each, matrix in zip(narrow, wide, strict=True)
    )
    got = eight_bits.forward(narrow, weights, CONFIG, hidden.bfloat16(), positions, memory())
    error = (got.double() - exact.double()).norm() / exact.double().norm()
    assert error < 0.1
