"""The residual sum and the norm after it, in one pass over the rows.

Source:
    Zhang and Sennrich, "Root mean square layer normalization" (2019).
"""

from __future__ import annotations

from torch import Tensor

from duologue.kernels import implementation
from duologue.kernels.scaled import ScaledRows

EPSILON = 1e-8
"""Of Moshi's norms."""


def add_rms_norm(
    x: Tensor, delta: Tensor | None, weight: Tensor, delta_scale: Tensor | None = None
) -> Tensor:
    """Add to the residual stream, in place, and return its norm.

    Shapes:
        x: [R, D], becomes ``x + delta``
        delta: [R, D], or None: nothing is added
        weight: [D]
        delta_scale: [R] float32, what rows of ``delta`` are multiplied by first
        returns: [R, D], of x's type
    """
    result: Tensor = implementation(__name__, x).add_rms_norm(x, delta, weight, delta_scale)
    return result


def add_rms_norm_scaled(
    x: Tensor, delta: Tensor | None, weight: Tensor, delta_scale: Tensor | None = None
) -> ScaledRows:
    """Do the same, for a product in 8 bits."""
    result: ScaledRows = implementation(__name__, x).add_rms_norm_scaled(
        x, delta, weight, delta_scale
    )
    return result


def embed_rms_norm(x: Tensor, table: Tensor, ids: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Add one embedding to each row, and return the sums and their norm.

    Shapes:
        x: [R, D], left as it is; rows may be strided
        table: [V, D]
        ids: [R] int32, each within the table; may be strided
        weight: [D]
        returns: [R, D] and [R, D], of x's type
    """
    result: tuple[Tensor, Tensor] = implementation(__name__, x).embed_rms_norm(
        x, table, ids, weight
    )
    return result
