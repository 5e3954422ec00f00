"""The windows of streamed convolutions: what came before and what comes now, as rows of a matrix.

A causal convolution is one product of its weights with these rows. What a later step needs of the
past is in the last of them.
"""

from __future__ import annotations

from torch import Tensor

from duologue.kernels import implementation


def stream_windows(
    x: Tensor,
    past: Tensor,
    slots: Tensor,
    *,
    kernel: int,
    stride: int = 1,
    activated: bool = False,
    first: Tensor | None = None,
) -> Tensor:
    """Make the windows of the next inputs of some slots, and keep what the step after needs.

    Shapes:
        x: [R, T, C], T a multiple of the stride; contiguous
        past: [S, kernel - stride, C], the last inputs of each slot; becomes that of this step
        slots: [R] int64
        first: [R] bool, where the past is the first input, repeated
        returns: [R, T / stride, kernel * C]

    Args:
        activated: Windows are of ``elu(x)``. The past is kept so.
    """
    result: Tensor = implementation(__name__, x).stream_windows(
        x, past, slots, kernel, stride, activated, first
    )
    kept = past.shape[1]
    if kept:
        last = result[:, -1, stride * x.shape[2] :]
        past.index_copy_(0, slots, last.unflatten(1, (kept, -1)))
    return result
