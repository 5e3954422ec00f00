"""The windows of streamed convolutions."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from duologue.kernels.stream_windows import stream_windows
from tests.kernels.judge import DEVICE, Kernel, assert_as_good, noise

pytestmark = pytest.mark.torch

SLOTS = torch.tensor([3, 0, 1], device=DEVICE)
SIZES = [(7, 1, 12, 5), (3, 1, 2, 40), (8, 4, 8, 3), (1, 1, 4, 6), (2, 1, 1, 700)]


def joined(x: Tensor, past: Tensor, activated: bool, first: Tensor | None) -> Tensor:
    """Past and present of each row, in x's type."""
    now = F.elu(x) if activated else x
    before = past[SLOTS].to(x.dtype)
    if first is not None:
        before = torch.where(first[:, None, None], now[:, :1], before)
    return torch.cat((before, now), 1)


@pytest.mark.parametrize("activated", [False, True])
@pytest.mark.parametrize("repeats", [False, True])
@pytest.mark.parametrize(("size", "stride", "length", "channels"), SIZES)
def test_windows_are_of_the_past_and_of_now(
    kernel: Kernel,
    size: int,
    stride: int,
    length: int,
    channels: int,
    repeats: bool,
    activated: bool,
    dtype: torch.dtype,
) -> None:
    x = noise(3, length, channels, dtype=dtype)
    past = noise(5, size - stride, channels, dtype=dtype)
    first = torch.tensor([True, False, True], device=DEVICE) if repeats else None
    got = kernel("stream_windows").stream_windows(x, past, SLOTS, size, stride, activated, first)

    def windows(dtype: torch.dtype) -> Tensor:
        every = joined(x.to(dtype), past, activated, first)
        cut = [every[:, n : n + size].flatten(1) for n in range(0, length, stride)]
        return torch.stack(cut, 1)

    assert_as_good(got, windows(dtype), windows(torch.float64))


def test_the_past_of_the_next_step_is_the_end_of_this_one() -> None:
    past = noise(5, 6, 8)
    before, x = past.clone(), noise(3, 2, 8)
    stream_windows(x, past, SLOTS, kernel=7, activated=True)
    torch.testing.assert_close(past[SLOTS], joined(x, before, True, None)[:, -6:])
    assert torch.equal(past[[2, 4]], before[[2, 4]])
