"""The depth transformer: writes the codes of the next frame, each knowing the ones before it.

Of the steps that some checkpoints have beyond the model's own codebooks nothing is computed: they
would guess what the person says, and the guess would be replaced by what was heard.

Source:
    Moshi paper, section 3.4.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor
from torch.nn import functional as F

from duologue.engines.models.moshi_lm.config import MoshiConfig
from duologue.engines.models.moshi_lm.weights import DepthWeights
from duologue.kernels.add_rms_norm import add_rms_norm, embed_rms_norm
from duologue.kernels.depth_attention import depth_attention
from duologue.kernels.swiglu import swiglu

Choose = Callable[[int, Tensor], Tensor]
"""Draws the code of a step for each row: [R, audio_card] to [R] int32."""


def write_codes(
    weights: DepthWeights, config: MoshiConfig, hidden: Tensor, text: Tensor, choose: Choose
) -> Tensor:
    """Write the codes of the frame whose text token is known.

    Shapes:
        hidden: [R, D], from the temporal transformer
        text: [R] int32
        returns: [R, codebooks] int32
    """
    rows, steps = len(hidden), config.codebooks
    inputs = F.linear(hidden, weights.input).view(rows, steps, -1)
    kept = hidden.new_empty(
        (config.depth_layers, rows, 2, config.depth_heads, steps, config.depth_head_dimension)
    )
    codes = text.new_empty((rows, steps))
    last = text
    for step in range(steps):
        table = weights.code_embeddings[step - 1] if step else weights.text_embedding
        x, normed = embed_rms_norm(inputs[:, step], table, last, weights.layers[0].norm1)
        delta: Tensor | None = None
        for index, layer in enumerate(weights.layers):
            if index:
                normed = add_rms_norm(x, delta, layer.norm1)
            qkv = F.linear(normed, layer.in_proj[step])
            attended = depth_attention(qkv, kept[index], step)
            normed = add_rms_norm(x, F.linear(attended, layer.out_proj[step]), layer.norm2)
            gated = swiglu(F.linear(normed, layer.gate_up[step]))
            delta = F.linear(gated, layer.down[step])
        assert delta is not None
        last = choose(step, F.linear(x + delta, weights.heads[step]))
        codes[:, step] = last
    return codes
