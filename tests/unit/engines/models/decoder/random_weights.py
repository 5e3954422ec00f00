"""A folder with one transformer of random weights."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from duologue.engines.models.decoder.config import DecoderConfig, ExpertsConfig

# On shared cores, threads that wait for each other by spinning take seconds.
torch.set_num_threads(1)

DENSE = DecoderConfig(
    dimension=16,
    layers=2,
    heads=4,
    kv_heads=2,
    head_dimension=8,
    feed_forward=24,
    epsilon=1e-6,
    positions=64,
    rope_base=10_000.0,
)
EXPERTS = ExpertsConfig(count=4, chosen=2, feed_forward=8, shared=8)


def write_random(folder: Path, config: DecoderConfig) -> Path:
    generator = torch.Generator().manual_seed(3)

    def noise(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator) * shape[-1] ** -0.5

    size, head = config.dimension, config.head_dimension
    tensors = {"m.norm.weight": noise(size) + 1}

    def gated(name: str, middle: int) -> None:
        tensors[f"{name}.gate_proj.weight"] = noise(middle, size)
        tensors[f"{name}.up_proj.weight"] = noise(middle, size)
        tensors[f"{name}.down_proj.weight"] = noise(size, middle)

    for index in range(config.layers):
        layer = f"m.layers.{index}"
        for part, heads in (("q", config.heads), ("k", config.kv_heads), ("v", config.kv_heads)):
            tensors[f"{layer}.self_attn.{part}_proj.weight"] = noise(heads * head, size)
        tensors[f"{layer}.self_attn.o_proj.weight"] = noise(size, config.heads * head)
        tensors[f"{layer}.self_attn.q_norm.weight"] = noise(head) + 1
        tensors[f"{layer}.self_attn.k_norm.weight"] = noise(head) + 1
        tensors[f"{layer}.input_layernorm.weight"] = noise(size) + 1
        tensors[f"{layer}.post_attention_layernorm.weight"] = noise(size) + 1
        if config.experts is None:
            gated(f"{layer}.mlp", config.feed_forward)
            continue
        tensors[f"{layer}.mlp.gate.weight"] = noise(config.experts.count, size)
        tensors[f"{layer}.mlp.shared_expert_gate.weight"] = noise(1, size)
        gated(f"{layer}.mlp.shared_expert", config.experts.shared)
        for expert in range(config.experts.count):
            gated(f"{layer}.mlp.experts.{expert}", config.experts.feed_forward)
    save_file(tensors, folder / "model.safetensors")
    (folder / "config.json").write_text("{}")
    return folder
