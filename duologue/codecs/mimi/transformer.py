"""The transformers on both sides of the quantizer: causal, with a window of a few seconds.

Each slot keeps keys and values in a ring, whose rows are found by position modulo its length. The
rotation by position is part of a stored key, so the order of the ring does not matter, only which
rows lie within the window of a query. The ring is longer than the window by the positions of one
step less one, so that the first query of a step finds its oldest key still there: a step of any
length gives what a step of each position would.

Source:
    Moshi paper, section 3.3.1 (8 layers, LayerScale, GELU, window of 250 positions); RoPE by Su et
    al., "RoFormer" (2021), on interleaved pairs; LayerScale by Touvron et al. (2021).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from duologue.codecs.mimi.config import MimiConfig
from duologue.codecs.mimi.slots import Slots

_NORM_EPSILON = 1e-5
_RING_ALIGNMENT = 8
"""Attention kernels want rows of the mask that begin at multiples of this."""


@dataclass(frozen=True, slots=True)
class TransformerLayer:
    """Weights of one layer, by their names in the checkpoint.

    Shapes:
        in_proj: [3 * D, D], the rows of queries, keys and values
        out_proj: [D, D]
        linear1: [F, D]
        linear2: [D, F]
        norm1, norm2: weight [D] and bias [D]
        scale1, scale2: [D]
    """

    in_proj: Tensor
    out_proj: Tensor
    linear1: Tensor
    linear2: Tensor
    norm1: tuple[Tensor, Tensor]
    norm2: tuple[Tensor, Tensor]
    scale1: Tensor
    scale2: Tensor

    @classmethod
    def load(cls, named: Callable[[str], Tensor], name: str) -> TransformerLayer:
        """Look the weights up under a prefix."""
        return cls(
            in_proj=named(f"{name}.self_attn.in_proj_weight"),
            out_proj=named(f"{name}.self_attn.out_proj.weight"),
            linear1=named(f"{name}.linear1.weight"),
            linear2=named(f"{name}.linear2.weight"),
            norm1=(named(f"{name}.norm1.weight"), named(f"{name}.norm1.bias")),
            norm2=(named(f"{name}.norm2.weight"), named(f"{name}.norm2.bias")),
            scale1=named(f"{name}.layer_scale_1.scale"),
            scale2=named(f"{name}.layer_scale_2.scale"),
        )


@dataclass(frozen=True, slots=True)
class _Step:
    """What all layers of one step share.

    Shapes:
        active: [S] bool
        slots: [S, 1], each slot's number
        rows: [S, T], where in the ring the new keys go
        visible: [S, 1, T, R] bool, which rows a query sees
        cos, sin: [S, T, 1, 1, head_dimension / 2]
    """

    active: Tensor
    slots: Tensor
    rows: Tensor
    visible: Tensor
    cos: Tensor
    sin: Tensor


class TransformerStream:
    """The layers, with a ring for each and one clock for each slot."""

    __slots__ = ("_config", "_frequencies", "_layers", "_ring_rows", "_rings", "_slots", "position")

    def __init__(
        self,
        config: MimiConfig,
        layers: tuple[TransformerLayer, ...],
        slots: Slots,
        max_frames: int,
    ) -> None:
        longest = max_frames * config.positions_per_frame
        rows = config.context + longest - 1
        rows += -rows % _RING_ALIGNMENT
        self._config = config
        self._layers = layers
        self._rings = [
            slots.allocate((rows, 2, config.heads, config.head_dimension)) for _ in layers
        ]
        self.position = slots.allocate((), torch.int64)  # [S], of each slot's next input
        half = config.head_dimension // 2
        exponents = torch.arange(half, device=slots.device, dtype=torch.float32)
        self._frequencies = torch.exp(exponents * (-math.log(config.rope_base) / half))
        self._ring_rows = torch.arange(rows, device=slots.device)
        self._slots = torch.arange(slots.count, device=slots.device)[:, None]

    def __call__(self, x: Tensor, active: Tensor) -> Tensor:
        """Take one step, and advance the clocks of the slots that take part.

        Shapes:
            x: [S, T, D]
            active: [S] bool
            returns: [S, T, D]
        """
        length = x.shape[1]
        step = self._prepare(length, active)
        for layer, ring in zip(self._layers, self._rings, strict=True):
            attended = self._attend(layer, ring, F.layer_norm(x, x.shape[2:], *layer.norm1), step)
            x = x + layer.scale1 * attended
            hidden = F.gelu(F.linear(F.layer_norm(x, x.shape[2:], *layer.norm2), layer.linear1))
            x = x + layer.scale2 * F.linear(hidden, layer.linear2)
        self.position.add_(active, alpha=length)
        return x

    def _prepare(self, length: int, active: Tensor) -> _Step:
        rows = len(self._ring_rows)
        queries = self.position[:, None] + self._ring_rows[:length]  # [S, T]
        newest = queries[:, -1:]
        # The position that each row of the ring holds once this step is written: the latest one
        # that falls on the row. Below zero the row is still empty.
        keys = newest - torch.remainder(newest - self._ring_rows, rows)  # [S, R]
        age = queries[:, :, None] - keys[:, None]  # [S, T, R]
        visible = (age >= 0) & (age < self._config.context) & (keys >= 0)[:, None]
        angles = (queries[:, :, None].float() * self._frequencies)[:, :, None, None]
        return _Step(
            active=active,
            slots=self._slots,
            rows=torch.remainder(queries, rows),
            visible=visible[:, None],
            cos=angles.cos(),
            sin=angles.sin(),
        )

    def _attend(self, layer: TransformerLayer, ring: Tensor, x: Tensor, step: _Step) -> Tensor:
        heads, size = self._config.heads, self._config.head_dimension
        projected = F.linear(x, layer.in_proj)
        projected = projected.view(*x.shape[:2], 3, heads, size)  # [S, T, 3, H, D]
        turned = _rotate(projected[:, :, :2], step)
        written = torch.stack((turned[:, :, 1], projected[:, :, 2]), dim=2)  # [S, T, 2, H, D]
        kept = ring[step.slots, step.rows]
        ring[step.slots, step.rows] = torch.where(step.active.view(-1, 1, 1, 1, 1), written, kept)
        attended = F.scaled_dot_product_attention(
            turned[:, :, 0].transpose(1, 2),  # [S, H, T, D]
            ring[:, :, 0].transpose(1, 2),  # [S, H, R, D]
            ring[:, :, 1].transpose(1, 2),
            attn_mask=step.visible,
        )
        return F.linear(attended.transpose(1, 2).flatten(2), layer.out_proj)


def _rotate(x: Tensor, step: _Step) -> Tensor:
    """Turn pairs of neighbouring channels by their position, in float32.

    Shapes:
        x: [S, T, 2, H, D]
        returns: [S, T, 2, H, D]
    """
    real, imaginary = x.reshape(*x.shape[:4], -1, 2).float().unbind(5)
    turned = torch.stack(
        (
            real * step.cos - imaginary * step.sin,
            real * step.sin + imaginary * step.cos,
        ),
        dim=5,
    )
    return turned.flatten(4).to(x.dtype)
