"""Rotary positions in the layout of two halves: component i turns with component i + D / 2.

Source:
    Su et al., "RoFormer" (2021); the scaling of wavelengths is that of Llama 3.1 (Grattafiori et
    al., "The Llama 3 herd of models", 2024).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from duologue.engines.models.decoder.config import DecoderConfig, RopeScaling


def frequencies(config: DecoderConfig, device: torch.device) -> Tensor:
    """Return how far each pair of components turns from one position to the next.

    Shapes:
        returns: [head_dimension / 2] float32
    """
    size = config.head_dimension
    steps = torch.arange(0, size, 2, dtype=torch.float32, device=device) / size
    base = 1.0 / (config.rope_base**steps)
    return base if config.rope_scaling is None else _scaled(base, config.rope_scaling)


def axes(config: DecoderConfig, device: torch.device) -> Tensor:
    """Return by which of time, row and column each pair of components turns.

    The pairs take turns, as far as the sections of rows and columns go; the rest turn by time.

    Shapes:
        returns: [head_dimension / 2] int64
    """
    axis = torch.zeros(config.head_dimension // 2, dtype=torch.int64, device=device)
    for number, section in enumerate(config.rope_sections or (), 1):
        axis[number : 3 * section : 3] = number
    return axis


def angles(positions: Tensor, base: Tensor) -> tuple[Tensor, Tensor]:
    """Return cosines and sines.

    Shapes:
        positions: [R, T], or [R, T, D / 2] where pairs of components turn by different ones
        base: [D / 2], as ``frequencies`` returns it
        returns: [R, 1, T, D] each, float32
    """
    each = positions if positions.ndim == 3 else positions[:, :, None]
    turned = (each.float() * base)[:, None]
    both = torch.cat((turned, turned), dim=-1)
    return both.cos(), both.sin()


def turn(x: Tensor, by: tuple[Tensor, Tensor]) -> Tensor:
    """Turn.

    Shapes:
        x: [R, H, T, D]
        returns: the same
    """
    cos, sin = (each.to(x.dtype) for each in by)
    real, imaginary = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-imaginary, real), dim=-1) * sin


def _scaled(base: Tensor, scaling: RopeScaling) -> Tensor:
    wavelength = 2 * math.pi / base
    longest = scaling.original_positions / scaling.low_freq_factor
    shortest = scaling.original_positions / scaling.high_freq_factor
    share = (scaling.original_positions / wavelength - scaling.low_freq_factor) / (
        scaling.high_freq_factor - scaling.low_freq_factor
    )
    between = (1 - share) * base / scaling.factor + share * base
    scaled = torch.where(wavelength > longest, base / scaling.factor, base)
    return torch.where((wavelength <= longest) & (wavelength >= shortest), between, scaled)
