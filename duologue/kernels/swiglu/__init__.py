"""The gate of a feed-forward layer: SiLU of one half, times the other.

Source:
    Shazeer, "GLU variants improve transformer" (2020).
"""

from __future__ import annotations

from torch import Tensor

from duologue.kernels import implementation
from duologue.kernels.scaled import ScaledRows


def swiglu(gate_up: Tensor) -> Tensor:
    """Gate.

    Shapes:
        gate_up: [R, 2 * F], the gates and then what is gated
        returns: [R, F], of the same type
    """
    result: Tensor = implementation(__name__, gate_up).swiglu(gate_up)
    return result


def swiglu_scaled(gate_up: Tensor, row_scale: Tensor) -> ScaledRows:
    """Do the same between two products in 8 bits.

    Shapes:
        gate_up: [R, 2 * F]
        row_scale: [R] float32, what rows are multiplied by first
        returns: [R, F]
    """
    result: ScaledRows = implementation(__name__, gate_up).swiglu_scaled(gate_up, row_scale)
    return result
