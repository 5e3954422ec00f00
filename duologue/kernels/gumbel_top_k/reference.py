"""Drawing in plain torch."""

from __future__ import annotations

import torch
from torch import Tensor

_LOW = 0xFFFFFFFF
_STEP = 0x9E3779B9
"""The golden ratio in 32 bits: neighbouring numbers of steps become far apart."""


def gumbel_top_k(
    logits: Tensor, temperature: Tensor, top_k: Tensor, seeds: Tensor, counters: Tensor, draw: int
) -> Tensor:
    """See the package."""
    scores = logits.float()
    size = scores.shape[1]
    ordered = scores.sort(dim=1, descending=True).values
    last = ordered.gather(1, (top_k.long().clamp(1, size) - 1)[:, None])
    noise = -torch.log(-torch.log(uniform(seeds, counters, draw, size)))
    warm = temperature[:, None].clamp(min=1e-6)
    noisy = torch.where(scores >= last, scores / warm + noise, float("-inf"))
    chosen = torch.where(temperature[:, None] > 0, noisy, scores)
    return chosen.argmax(dim=1).to(torch.int32)


def uniform(seeds: Tensor, counters: Tensor, draw: int, size: int) -> Tensor:
    """Hash to numbers between 0 and 1, neither included.

    Shapes:
        returns: [R, size] float32
    """
    state = _mix(seeds & _LOW)
    state = _mix(state ^ ((seeds >> 32) & _LOW))
    state = _mix(state ^ (counters.long() & _LOW))
    state = _mix((state + draw * _STEP) & _LOW)
    tokens = torch.arange(size, device=seeds.device)
    mixed = _mix(state[:, None] ^ _mix((tokens + 1) * _STEP & _LOW))
    return ((mixed >> 9).float() + 0.5) * 2.0**-23


def _mix(x: Tensor) -> Tensor:
    """Hash 32 bits, held in 64."""
    x = x ^ (x >> 16)
    x = (x * 0x7FEB352D) & _LOW
    x = x ^ (x >> 15)
    x = (x * 0x846CA68B) & _LOW
    return x ^ (x >> 16)
