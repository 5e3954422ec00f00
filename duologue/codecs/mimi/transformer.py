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

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from duologue.codecs.mimi.config import MimiConfig
from duologue.codecs.mimi.slots import Slots
from duologue.kernels.add_layer_norm import add_layer_norm
from duologue.kernels.paged_attention import paged_attention
from duologue.kernels.pages import Rows
from duologue.kernels.rope_kv_write import rope_angles, rope_kv_write

_RING_ALIGNMENT = 32
"""Attention reads as many positions at once, and is faster where they lie side by side."""


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


class TransformerStream:
    """The layers, with a ring for each and one clock for each slot."""

    __slots__ = ("_config", "_layers", "_offsets", "_ring_rows", "_rings", "_table", "position")

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
        # One page for each slot, in which positions go round and round.
        self._rings = [
            slots.allocate((2, config.heads, rows, config.head_dimension)) for _ in layers
        ]
        self.position = slots.allocate((), torch.int64)  # [S + 1], of each slot's next input
        pages = torch.arange(slots.count + 1, dtype=torch.int32, device=slots.device)
        self._table = pages[:, None]
        self._offsets = torch.arange(longest, device=slots.device)

    def __call__(self, x: Tensor, slots: Tensor) -> Tensor:
        """Take one step, and advance the clocks of the slots that take part.

        Shapes:
            x: [R, T, D]
            slots: [R] int64
            returns: [R, T, D]
        """
        rows, length, size = x.shape
        places = self._places(slots, length)
        angles = rope_angles(places.positions, self._config.head_dimension, self._config.rope_base)
        # A row for each position, since what each sees is another part of its ring.
        x = x.reshape(rows * length, size).clone()
        delta, scale = None, None
        for layer, ring in zip(self._layers, self._rings, strict=True):
            normed = add_layer_norm(x, delta, scale, *layer.norm1)
            query = rope_kv_write(F.linear(normed, layer.in_proj), angles, ring, places)
            attended = paged_attention(query, ring, places, self._config.context)
            projected = F.linear(attended, layer.out_proj)
            normed = add_layer_norm(x, projected, layer.scale1, *layer.norm2)
            hidden = F.gelu(F.linear(normed, layer.linear1))
            delta, scale = F.linear(hidden, layer.linear2), layer.scale2
        if delta is not None and scale is not None:
            x = torch.addcmul(x, scale, delta)
        self.position.index_copy_(0, slots, self.position[slots] + length)
        return x.view(rows, length, size)

    def _places(self, slots: Tensor, length: int) -> Rows:
        positions = (self.position[slots][:, None] + self._offsets[:length]).flatten()
        first = (positions - self._config.context + 1).clamp(min=0)
        return Rows(
            table=self._table,
            slots=slots.repeat_interleave(length).int(),
            first=first.int(),
            positions=positions.int(),
        )
