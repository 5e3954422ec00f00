from __future__ import annotations

import pytest
import torch
from torch import Tensor

from duologue.codecs.mimi.checkpoint import load_tensors
from duologue.codecs.mimi.quantizer import ResidualQuantizer, SplitQuantizer
from tests.golden.mimi.sizes import TINY
from tests.unit.codecs.mimi.conftest import GOLDEN

pytestmark = pytest.mark.torch


def named(name: str) -> Tensor:
    return load_tensors(GOLDEN / "checkpoint.safetensors", TINY)[name]


def latents() -> Tensor:
    return torch.randn(2, 7, TINY.dimension, generator=torch.Generator().manual_seed(6))


def test_each_codebook_takes_the_entry_nearest_to_what_is_left() -> None:
    quantizer = ResidualQuantizer.load(named, "quantizer.rvq_rest", 3)
    rest = latents() @ quantizer.into.T
    for code, entries in zip(quantizer.encode(latents()), quantizer.entries, strict=True):
        distances = (rest[:, :, None] - entries).norm(dim=-1)
        assert torch.equal(code, distances.argmin(-1))
        rest = rest - entries[code]


def test_entries_are_sums_over_usage_and_unused_ones_do_not_divide_by_zero() -> None:
    tensors = {
        "q.input_proj.weight": torch.eye(2)[:, :, None],
        "q.output_proj.weight": torch.eye(2)[:, :, None],
        "q.vq.layers.0._codebook.cluster_usage": torch.tensor([4.0, 0.0]),
        "q.vq.layers.0._codebook.embedding_sum": torch.tensor([[2.0, 4.0], [1e-5, 0.0]]),
    }
    quantizer = ResidualQuantizer.load(tensors.__getitem__, "q", 1)
    torch.testing.assert_close(quantizer.entries[0], torch.tensor([[0.5, 1.0], [1.0, 0.0]]))


def test_decoding_adds_the_entries_of_all_codebooks() -> None:
    quantizer = SplitQuantizer.load(TINY, named)
    first = ResidualQuantizer.load(named, "quantizer.rvq_first", 1)
    rest = ResidualQuantizer.load(named, "quantizer.rvq_rest", TINY.codebooks - 1)
    codes = quantizer.encode(latents())
    assert codes.shape == (2, TINY.codebooks, 7)
    summed = sum(rest.entries[k][codes[:, k + 1]] for k in range(TINY.codebooks - 1))
    wanted = first.entries[0][codes[:, 0]] @ first.out.T + summed @ rest.out.T
    torch.testing.assert_close(quantizer.decode(codes), wanted)


def test_codes_outside_their_codebook_count_as_the_nearest_inside() -> None:
    quantizer = SplitQuantizer.load(TINY, named)
    wild = torch.full((1, TINY.codebooks, 2), -1)
    wild[..., 1] = TINY.codebook_size
    tame = wild.clamp(0, TINY.codebook_size - 1)
    assert torch.equal(quantizer.decode(wild), quantizer.decode(tame))
