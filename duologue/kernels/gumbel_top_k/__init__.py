"""Drawing one token for each row, by the row's own seed.

The scores of the likeliest tokens, divided by the temperature, get Gumbel noise; the largest wins.
That draws from the softmax without computing it. The noise comes from a hash of seed, counter and
token, so a draw depends on nothing but its row: it can be repeated on any device, in any batch.

Source:
    Maddison et al., "A* sampling" (2014), section 2, on the Gumbel-max trick; the hash is
    ``lowbias32`` of https://nullprogram.com/blog/2018/07/31/.
"""

from __future__ import annotations

from torch import Tensor

from duologue.kernels import implementation


def gumbel_top_k(
    logits: Tensor, temperature: Tensor, top_k: Tensor, seeds: Tensor, counters: Tensor, draw: int
) -> Tensor:
    """Draw.

    Tokens that are as likely as the last of the ``top_k`` take part as well.

    Shapes:
        logits: [R, V], float32 or bfloat16; rows may be strided
        temperature: [R] float32; where it is not positive the likeliest token is taken
        top_k: [R] int32, at least 1
        seeds: [R] int64
        counters: [R] int32, which step of its stream each row is at; never twice the same
        draw: which of the step's draws this is
        returns: [R] int32
    """
    result: Tensor = implementation(__name__, logits).gumbel_top_k(
        logits, temperature, top_k, seeds, counters, draw
    )
    return result
