from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from transformers import LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from duologue.engines.models.decoder.config import RopeScaling
from duologue.engines.models.decoder.rope import angles, axes, frequencies, turn
from tests.unit.engines.models.decoder.random_weights import DENSE

pytestmark = pytest.mark.speech


def test_positions_are_stretched_as_llama_3_stretches_them() -> None:
    config = replace(
        DENSE,
        head_dimension=64,
        rope_base=500_000.0,
        rope_scaling=RopeScaling(
            factor=32.0, low_freq_factor=1.0, high_freq_factor=4.0, original_positions=8192
        ),
    )
    theirs = LlamaConfig(
        hidden_size=256,
        num_attention_heads=4,
        max_position_embeddings=131_072,
        rope_parameters={
            "rope_type": "llama3",
            "rope_theta": 500_000.0,
            "factor": 32.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 8192,
        },
    )
    expected, _ = ROPE_INIT_FUNCTIONS["llama3"](theirs, torch.device("cpu"))
    torch.testing.assert_close(frequencies(config, torch.device("cpu")), expected)


def test_a_product_depends_on_the_distance_alone() -> None:
    base = frequencies(DENSE, torch.device("cpu"))
    query, key = torch.randn(2, 1, 1, 1, DENSE.head_dimension)

    def product(first: int, second: int) -> float:
        places = (torch.tensor([[each]]) for each in (first, second))
        turned = [turn(x, angles(at, base)) for x, at in zip((query, key), places, strict=True)]
        return float((turned[0] * turned[1]).sum())

    assert product(3, 1) == pytest.approx(product(40, 38), abs=1e-4)


def test_pairs_of_components_take_turns_by_time_row_and_column() -> None:
    config = replace(DENSE, head_dimension=16, rope_sections=(2, 3))
    assert axes(config, torch.device("cpu")).tolist() == [0, 1, 2, 0, 1, 2, 0, 0]
    assert axes(replace(config, rope_sections=None), torch.device("cpu")).tolist() == [0] * 8


def test_pairs_may_turn_by_positions_of_their_own() -> None:
    base = frequencies(DENSE, torch.device("cpu"))
    positions = torch.tensor([[3, 4]])
    same = angles(positions[:, :, None].expand(-1, -1, len(base)), base)
    for one, other in zip(same, angles(positions, base), strict=True):
        assert torch.equal(one, other)
