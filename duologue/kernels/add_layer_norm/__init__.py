"""The residual sum, scaled by channel, and the norm after it, in one pass over the rows.

Source:
    Ba et al., "Layer normalization" (2016); LayerScale by Touvron et al. (2021).
"""

from __future__ import annotations

from torch import Tensor

from duologue.kernels import implementation

EPSILON = 1e-5


def add_layer_norm(
    x: Tensor, delta: Tensor | None, scale: Tensor | None, weight: Tensor, bias: Tensor
) -> Tensor:
    """Add to the residual stream, in place, and return its norm.

    Shapes:
        x: [R, D], becomes ``x + scale * delta``
        delta: [R, D], or None: nothing is added
        scale: [D], what channels of ``delta`` are multiplied by first
        weight, bias: [D]
        returns: [R, D], of x's type
    """
    result: Tensor = implementation(__name__, x).add_layer_norm(x, delta, scale, weight, bias)
    return result
