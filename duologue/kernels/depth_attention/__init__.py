"""Attention over the few positions of one frame, whose keys begin anew with each frame.

Without rotation by position: there are as many sets of weights as positions.

Source:
    The depth transformer of Moshi, section 3.4.1 of its paper.
"""

from __future__ import annotations

from torch import Tensor

from duologue.kernels import implementation


def depth_attention(qkv: Tensor, kept: Tensor, step: int) -> Tensor:
    """Keep the keys and values of a step and attend to those of the steps so far.

    Shapes:
        qkv: [R, 3 * H * D]
        kept: [R, 2, H, S, D], of qkv's type; steps before 0 are never read
        step: from 0 to S - 1
        returns: [R, H * D]
    """
    result: Tensor = implementation(__name__, qkv).depth_attention(qkv, kept, step)
    return result
