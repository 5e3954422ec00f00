"""The weights, as the forward functions read them: plain tensors, the depth steps stacked."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True, slots=True)
class TemporalLayer:
    """One layer of the temporal transformer, in the order of use.

    Shapes:
        norm1, norm2: [D] float32
        in_proj: [3 * D, D]; rows are queries, keys, values, each head by head
        out_proj: [D, D]
        gate_up: [2 * H, D]; rows are the gate, then what it lets through
        down: [D, H]
    """

    norm1: Tensor
    in_proj: Tensor
    out_proj: Tensor
    norm2: Tensor
    gate_up: Tensor
    down: Tensor


@dataclass(frozen=True, slots=True)
class DepthLayer:
    """One layer of the depth transformer. Each step has weights of its own; the norms are shared.

    Shapes:
        norm1, norm2: [D] float32
        in_proj: [S, 3 * D, D]
        out_proj: [S, D, D]
        gate_up: [S, 2 * H, D]
        down: [S, D, H]
    """

    norm1: Tensor
    in_proj: Tensor
    out_proj: Tensor
    norm2: Tensor
    gate_up: Tensor
    down: Tensor


@dataclass(frozen=True, slots=True)
class DepthWeights:
    """The depth transformer; D is the size of the temporal one, d its own, S its steps.

    Shapes:
        input: [S * d, D], so that the inputs of all steps are one product
        text_embedding: [text_card + 1, d], before the first step
        code_embeddings: [S - 1, audio_card + 1, d], before each later one
        heads: [S, audio_card, d]
    """

    input: Tensor
    text_embedding: Tensor
    code_embeddings: Tensor
    layers: tuple[DepthLayer, ...]
    heads: Tensor


@dataclass(frozen=True, slots=True)
class MoshiWeights:
    """All weights of the language model.

    Shapes:
        embeddings: [text_card + 1 + 2 * codebooks * (audio_card + 1), D], one stream after the
            other, as in a row
        begins: [streams] int32, where in it each stream begins
        out_norm: [D] float32
        text_head: [text_card, D]
    """

    embeddings: Tensor
    begins: Tensor
    layers: tuple[TemporalLayer, ...]
    out_norm: Tensor
    text_head: Tensor
    depth: DepthWeights
