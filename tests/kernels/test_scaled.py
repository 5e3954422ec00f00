"""Rows in 8 bits."""

from __future__ import annotations

import pytest
import torch

from duologue.kernels.scaled import FP8, product, scale_rows
from tests.kernels.judge import noise

pytestmark = pytest.mark.torch


def test_products_of_rows_of_any_size_are_near() -> None:
    x = noise(16, 64) * (10.0 ** torch.arange(-8, 8, device=noise(1).device))[:, None]
    weight = noise(32, 64)
    scale = weight.abs().max() / 448
    rows = scale_rows(x)
    got = product(rows, (weight / scale).to(FP8), scale).double() * rows.scale.double()[:, None]
    exact = x.double() @ weight.double().t()
    error = (got - exact).norm(dim=1) / exact.norm(dim=1)
    assert (error < 0.06).all()
