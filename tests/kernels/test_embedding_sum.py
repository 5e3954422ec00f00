"""The sum of embeddings."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from duologue.kernels.embedding_sum import embedding_sum
from tests.kernels.judge import DEVICE, Kernel, assert_as_good, noise, strided

pytestmark = pytest.mark.torch


@pytest.mark.parametrize("size", [8, 1030])
def test_each_stream_has_a_table(kernel: Kernel, size: int, dtype: torch.dtype) -> None:
    tokens = torch.tensor([[0, 3, 2], [9, -1, 0], [-1, -1, -1]], dtype=torch.int32, device=DEVICE)
    table = noise(10 + 4 + 3, size, dtype=dtype)
    begins = torch.tensor([0, 10, 14], dtype=torch.int32, device=DEVICE)
    got = kernel("embedding_sum").embedding_sum(strided(tokens.float()).int(), table, begins)
    parts = [
        F.embedding(tokens[:, n].clamp(min=0) + begins[n], table) * (tokens[:, n : n + 1] >= 0)
        for n in range(3)
    ]
    simple = parts[0] + parts[1] + parts[2]
    exact = sum(part.double() for part in parts)
    assert isinstance(exact, torch.Tensor)
    assert_as_good(got, simple, exact)
    assert not got[2].any()


def test_the_implementation_follows_the_device() -> None:
    table = noise(5, 16)
    tokens = torch.tensor([[4], [1]], dtype=torch.int32, device=DEVICE)
    begins = torch.zeros(1, dtype=torch.int32, device=DEVICE)
    assert torch.equal(embedding_sum(tokens, table, begins), table[[4, 1]])
