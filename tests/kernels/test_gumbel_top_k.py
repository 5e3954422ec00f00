"""Drawing tokens: by distribution, and always the same ones."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from duologue.kernels.gumbel_top_k import gumbel_top_k
from duologue.kernels.gumbel_top_k.reference import uniform
from tests.kernels.judge import DEVICE, Kernel, noise, strided

pytestmark = pytest.mark.torch

Options = tuple[Tensor, Tensor, Tensor, Tensor]
DRAWS = 6000


def options(rows: int, temperature: float = 0.8, top_k: int = 5, seed: int = 12) -> Options:
    """Temperature, top-k, seeds and counters of rows that are steps of one stream."""
    return (
        torch.full((rows,), temperature, device=DEVICE),
        torch.full((rows,), top_k, dtype=torch.int32, device=DEVICE),
        torch.full((rows,), seed, dtype=torch.int64, device=DEVICE),
        torch.arange(rows, dtype=torch.int32, device=DEVICE),
    )


def test_tokens_come_as_often_as_they_are_likely(narrow_kernel: Kernel) -> None:
    logits = noise(1, 19, dtype=narrow_kernel.dtype, scale=1.5)
    rows = logits.expand(DRAWS, 19).contiguous()
    got = narrow_kernel("gumbel_top_k").gumbel_top_k(rows, *options(DRAWS), 3)
    best = logits[0].float().topk(5)
    expected = torch.zeros(19, device=DEVICE)
    expected[best.indices] = torch.softmax(best.values / 0.8, 0)
    found = torch.bincount(got.long(), minlength=19) / DRAWS
    assert not found[expected == 0].any()
    deviation = (expected * (1 - expected) / DRAWS).sqrt()
    assert ((found - expected).abs() <= 4.5 * deviation).all()


def test_without_temperature_the_likeliest_is_taken(kernel: Kernel) -> None:
    logits = noise(7, 33)
    got = kernel("gumbel_top_k").gumbel_top_k(strided(logits), *options(7, temperature=0.0), 0)
    assert torch.equal(got.long(), logits.argmax(1))
    got = kernel("gumbel_top_k").gumbel_top_k(logits, *options(7, top_k=1), 0)
    assert torch.equal(got.long(), logits.argmax(1))


def test_a_draw_depends_on_its_row_alone(kernel: Kernel, dtype: torch.dtype) -> None:
    logits = noise(6, 40, dtype=dtype)
    every = options(6, top_k=40, seed=-(2**40) - 7)
    together = kernel("gumbel_top_k").gumbel_top_k(logits, *every, 2)
    backwards = (each.flip(0).contiguous() for each in every)
    again = kernel("gumbel_top_k").gumbel_top_k(logits.flip(0).contiguous(), *backwards, 2)
    assert torch.equal(together, again.flip(0))


@pytest.mark.parametrize("draw", range(4))
def test_both_implementations_draw_the_same(draw: int) -> None:
    from duologue.kernels.gumbel_top_k import reference, triton_kernel

    logits = noise(16, 70, dtype=torch.bfloat16, scale=2)
    every = options(16, top_k=30, seed=2**50 + 3)
    assert torch.equal(
        reference.gumbel_top_k(logits, *every, draw),
        triton_kernel.gumbel_top_k(logits, *every, draw),
    )


def test_seeds_counters_and_draws_are_far_apart() -> None:
    _, _, seeds, counters = options(200)
    numbers = uniform(seeds, counters, 0, 500)
    assert 0 < numbers.min() < 1e-4
    assert 1 - 1e-4 < numbers.max() < 1
    assert (numbers.mean() - 0.5).abs() < 0.005
    others = [
        uniform(seeds + 1, counters, 0, 500),
        uniform(seeds + (1 << 32), counters, 0, 500),
        uniform(seeds, counters + 1, 0, 500),
        uniform(seeds, counters, 1, 500),
    ]
    for other in others:
        pair = torch.stack((numbers.flatten(), other.flatten()))
        assert torch.corrcoef(pair)[0, 1].abs() < 0.02
        assert not torch.equal(numbers, other)
    near = torch.stack((numbers[:, :-1].flatten(), numbers[:, 1:].flatten()))
    assert torch.corrcoef(near)[0, 1].abs() < 0.02


def test_the_implementation_follows_the_device() -> None:
    logits = noise(3, 9)
    got = gumbel_top_k(logits, *options(3, temperature=0.0), 0)
    assert torch.equal(got.long(), logits.argmax(1))
