"""The temporal transformer: reads frames, remembers them, and knows what comes next.

Attention is left to whoever keeps the memory: a ring, pages, on a processor or a GPU.

Source:
    Moshi paper, section 3.2 (Helium).
"""

from __future__ import annotations

from typing import Protocol

from torch import Tensor
from torch.nn import functional as F

from duologue.engines.models.moshi_lm.config import MoshiConfig
from duologue.engines.models.moshi_lm.weights import MoshiWeights
from duologue.kernels.add_rms_norm import add_rms_norm
from duologue.kernels.embedding_sum import embedding_sum
from duologue.kernels.rope_kv_write import rope_angles
from duologue.kernels.swiglu import swiglu


class Memory(Protocol):
    """What the rows of one step attend to."""

    def write_and_attend(self, layer: int, qkv: Tensor, angles: tuple[Tensor, Tensor]) -> Tensor:
        """Turn queries and keys, keep keys and values, and attend to all that each row may see.

        Shapes:
            qkv: [R, 3 * D], queries, keys and values, each head by head; not turned yet
            angles: cosines and sines, [R, head_dimension / 2] float32 each
            returns: [R, D]
        """
        ...


def embed(weights: MoshiWeights, tokens: Tensor) -> Tensor:
    """Sum the embeddings of the tokens of each row. A token of -1 adds nothing.

    Shapes:
        tokens: [R, streams] int32, in the order text, said, heard
        returns: [R, D]
    """
    return embedding_sum(tokens, weights.embeddings, weights.begins)


def forward(
    weights: MoshiWeights,
    config: MoshiConfig,
    hidden: Tensor,
    positions: Tensor,
    memory: Memory,
) -> Tensor:
    """Read one position in each row.

    Rows may be of many streams, or successive positions of one: then this is a prefill.

    Shapes:
        hidden: [R, D], from ``embed`` or of a voice; changed in place
        positions: [R] int32, counted from the beginning of each stream
        returns: [R, D]
    """
    angles = rope_angles(positions, config.head_dimension, config.rope_base)
    delta: Tensor | None = None
    for index, layer in enumerate(weights.layers):
        normed = add_rms_norm(hidden, delta, layer.norm1)
        qkv = F.linear(normed, layer.in_proj)
        attended = memory.write_and_attend(index, qkv, angles)
        normed = add_rms_norm(hidden, F.linear(attended, layer.out_proj), layer.norm2)
        delta = F.linear(swiglu(F.linear(normed, layer.gate_up)), layer.down)
    return add_rms_norm(hidden, delta, weights.out_norm)


def text_logits(weights: MoshiWeights, hidden: Tensor) -> Tensor:
    """Return how much each text token is expected next.

    Shapes:
        hidden: [R, D], from ``forward``
        returns: [R, text_card]
    """
    return F.linear(hidden, weights.text_head)
