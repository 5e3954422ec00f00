"""The temporal transformer with most of its weights in 8 bits.

Half of the bytes, hence of the time where few streams wait for the weights. Scores of the output
projections stay as they are: they are a twelfth of the weights, and the scale of their input would
have to be known across all heads. There is no evidence of its quality on published weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from torch import Tensor
from torch.nn import functional as F

from duologue.engines.models.moshi_lm.config import MoshiConfig
from duologue.engines.models.moshi_lm.weights import MoshiWeights, TemporalLayer
from duologue.kernels.add_rms_norm import add_rms_norm, add_rms_norm_scaled
from duologue.kernels.rope_kv_write import rope_angles
from duologue.kernels.scaled import FP8, LARGEST, product
from duologue.kernels.swiglu import swiglu_scaled


class ScaledMemory(Protocol):
    """What rows attend to, where their projections still wait for a scale."""

    def write_and_attend(
        self,
        layer: int,
        qkv: Tensor,
        angles: tuple[Tensor, Tensor],
        row_scale: Tensor | None = None,
    ) -> Tensor:
        """As ``temporal.Memory``, of rows that are multiplied by ``row_scale`` first."""
        ...


@dataclass(frozen=True, slots=True)
class Matrix:
    """Weights to be multiplied by one scale.

    Shapes:
        values: [M, N] float8_e4m3fn
        scale: [] float32
    """

    values: Tensor
    scale: Tensor

    @classmethod
    def of(cls, weight: Tensor) -> Matrix:
        """Fit weights into the range of the type."""
        wide = weight.float()
        scale = wide.abs().max() / LARGEST
        return cls((wide / scale).to(FP8), scale)


@dataclass(frozen=True, slots=True)
class NarrowLayer:
    """One layer; see ``TemporalLayer``."""

    norm1: Tensor
    in_proj: Matrix
    out_proj: Tensor
    norm2: Tensor
    gate_up: Matrix
    down: Matrix

    @classmethod
    def of(cls, layer: TemporalLayer) -> NarrowLayer:
        """Make it of a layer as it was read."""
        return cls(
            norm1=layer.norm1,
            in_proj=Matrix.of(layer.in_proj),
            out_proj=layer.out_proj,
            norm2=layer.norm2,
            gate_up=Matrix.of(layer.gate_up),
            down=Matrix.of(layer.down),
        )


def narrow_layers(layers: list[TemporalLayer]) -> tuple[NarrowLayer, ...]:
    """Make the layers narrow one by one, and empty the list: the wide ones can be freed."""
    narrow = []
    while layers:
        narrow.append(NarrowLayer.of(layers.pop(0)))
    return tuple(narrow)


def forward(
    layers: tuple[NarrowLayer, ...],
    weights: MoshiWeights,
    config: MoshiConfig,
    hidden: Tensor,
    positions: Tensor,
    memory: ScaledMemory,
) -> Tensor:
    """Read one position in each row, as ``temporal.forward`` does.

    Shapes:
        hidden: [R, D] bfloat16, changed in place
        positions: [R] int32
        returns: [R, D]
    """
    angles = rope_angles(positions, config.head_dimension, config.rope_base)
    delta: Tensor | None = None
    scale: Tensor | None = None
    for index, layer in enumerate(layers):
        rows = add_rms_norm_scaled(hidden, delta, layer.norm1, scale)
        qkv = product(rows, layer.in_proj.values, layer.in_proj.scale)
        attended = memory.write_and_attend(index, qkv, angles, rows.scale)
        projected = F.linear(attended, layer.out_proj)
        rows = add_rms_norm_scaled(hidden, projected, layer.norm2)
        gated = swiglu_scaled(product(rows, layer.gate_up.values, layer.gate_up.scale), rows.scale)
        delta, scale = product(gated, layer.down.values, layer.down.scale), gated.scale
    return add_rms_norm(hidden, delta, weights.out_norm, scale)
