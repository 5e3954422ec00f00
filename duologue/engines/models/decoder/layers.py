"""Weights of the layers, looked up by their names on disk, and what each does without the past."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from duologue.engines.models.checkpoint_folder import CheckpointFolder
from duologue.engines.models.decoder.config import DecoderConfig, ExpertsConfig
from duologue.kernels.swiglu import swiglu

FeedForward = Callable[[Tensor], Tensor]
"""[N, D] -> [N, D]"""


@dataclass(frozen=True, slots=True)
class Gated:
    """One gated layer.

    Shapes:
        gate_up: [2 * F, D]
        down: [D, F]
    """

    gate_up: Tensor
    down: Tensor

    @classmethod
    def load(cls, folder: CheckpointFolder, name: str, dimension: int, size: int) -> Gated:
        """Look the weights up under a prefix."""
        gate = folder.tensor(f"{name}.gate_proj.weight", size, dimension)
        up = folder.tensor(f"{name}.up_proj.weight", size, dimension)
        down = folder.tensor(f"{name}.down_proj.weight", dimension, size)
        return cls(torch.cat((gate, up)), down)

    def __call__(self, x: Tensor) -> Tensor:
        """[N, D] -> [N, D]."""
        return F.linear(swiglu(F.linear(x, self.gate_up)), self.down)


@dataclass(frozen=True, slots=True)
class Experts:
    """Many gated layers, a few of which each row passes, and one that all may pass.

    Shapes:
        router: [E, D]
        shared_gate: [1, D]

    Source:
        Shazeer et al., "Outrageously large neural networks" (2017); shared experts as in Dai et
        al., "DeepSeekMoE" (2024).
    """

    config: ExpertsConfig
    router: Tensor
    experts: tuple[Gated, ...]
    shared: Gated | None
    shared_gate: Tensor | None

    @classmethod
    def load(
        cls, folder: CheckpointFolder, name: str, dimension: int, config: ExpertsConfig
    ) -> Experts:
        """Look the weights up under a prefix."""
        shared = shared_gate = None
        if config.shared:
            shared = Gated.load(folder, f"{name}.shared_expert", dimension, config.shared)
            shared_gate = folder.tensor(f"{name}.shared_expert_gate.weight", 1, dimension)
        return cls(
            config,
            folder.tensor(f"{name}.gate.weight", config.count, dimension),
            tuple(
                Gated.load(folder, f"{name}.experts.{index}", dimension, config.feed_forward)
                for index in range(config.count)
            ),
            shared,
            shared_gate,
        )

    def __call__(self, x: Tensor) -> Tensor:
        """[N, D] -> [N, D]."""
        odds = F.linear(x, self.router).float().softmax(dim=-1)
        weights, chosen = odds.topk(self.config.chosen, dim=-1)  # [N, chosen]
        if self.config.normalised:
            weights = weights / weights.sum(dim=-1, keepdim=True)
        weights = weights.to(x.dtype)
        out = torch.zeros_like(x)
        for index in chosen.unique().tolist():
            rows, place = (chosen == index).nonzero(as_tuple=True)
            made = self.experts[index](x[rows]) * weights[rows, place, None]
            out.index_add_(0, rows, made)
        if self.shared is not None and self.shared_gate is not None:
            out = out + F.linear(x, self.shared_gate).sigmoid() * self.shared(x)
        return out


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer.

    Shapes:
        qkv: [(H + 2 * KV) * head, D]
        out: [D, H * head]
        norm1, norm2: [D]
        query_norm, key_norm: [head], where the family has them
        scale1, scale2: [D], what the two branches are multiplied by, likewise
    """

    qkv: Tensor
    out: Tensor
    norm1: Tensor
    norm2: Tensor
    feed_forward: FeedForward
    query_norm: Tensor | None
    key_norm: Tensor | None
    scale1: Tensor | None
    scale2: Tensor | None

    @classmethod
    def load(cls, folder: CheckpointFolder, name: str, config: DecoderConfig) -> Layer:
        """Look the weights up under a prefix."""
        size, head = config.dimension, config.head_dimension
        attention = f"{name}.self_attn"
        parts = [("q", config.heads), ("k", config.kv_heads), ("v", config.kv_heads)]
        qkv = [
            folder.tensor(f"{attention}.{part}_proj.weight", heads * head, size)
            for part, heads in parts
        ]

        def optional(weight: str, *shape: int) -> Tensor | None:
            return folder.tensor(weight, *shape) if weight in folder else None

        experts = config.experts
        return cls(
            qkv=torch.cat(qkv),
            out=folder.tensor(f"{attention}.o_proj.weight", size, config.heads * head),
            norm1=folder.tensor(f"{name}.input_layernorm.weight", size),
            norm2=folder.tensor(f"{name}.post_attention_layernorm.weight", size),
            feed_forward=Gated.load(folder, f"{name}.mlp", size, config.feed_forward)
            if experts is None
            else Experts.load(folder, f"{name}.mlp", size, experts),
            query_norm=optional(f"{attention}.q_norm.weight", head),
            key_norm=optional(f"{attention}.k_norm.weight", head),
            scale1=optional(f"{name}.self_attn_layer_scale.scale", size),
            scale2=optional(f"{name}.mlp_layer_scale.scale", size),
        )
