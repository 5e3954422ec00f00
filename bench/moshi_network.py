"""The published network's sizes with random weights, made on the device itself.

Speed does not depend on the values of weights; quality cannot be judged with these.
"""

from __future__ import annotations

import tempfile
from itertools import accumulate
from pathlib import Path

import torch
from torch import Tensor

from duologue.codecs.mimi import Mimi, MimiConfig, save_random
from duologue.engines.models.moshi_lm.config import MOSHI, MoshiConfig
from duologue.engines.models.moshi_lm.weights import (
    DepthLayer,
    DepthWeights,
    MoshiWeights,
    TemporalLayer,
)
from duologue.engines.runners.streaming_lm.eight_bits import NarrowLayer
from duologue.engines.runners.streaming_lm.frame_step import Network


def make_network(
    config: MoshiConfig = MOSHI,
    codec: MimiConfig | None = None,
    *,
    device: str = "cuda",
    eight_bit_weights: bool = False,
    narrow_codec: bool = False,
) -> Network:
    """Make a language model and a codec."""
    torch.manual_seed(0)
    dtype = torch.bfloat16 if device.startswith("cuda") else torch.float32

    def random(*shape: int) -> Tensor:
        return torch.empty(shape, dtype=dtype, device=device).normal_(0, shape[-1] ** -0.5)

    def ones(size: int) -> Tensor:
        return torch.ones(size, device=device)

    def layer() -> TemporalLayer:
        size = config.dimension
        return TemporalLayer(
            norm1=ones(size),
            in_proj=random(3 * size, size),
            out_proj=random(size, size),
            norm2=ones(size),
            gate_up=random(2 * config.hidden, size),
            down=random(size, config.hidden),
        )

    def depth_layer() -> DepthLayer:
        steps, size, hidden = config.codebooks, config.depth_dimension, config.depth_hidden
        return DepthLayer(
            norm1=ones(size),
            in_proj=random(steps, 3 * size, size),
            out_proj=random(steps, size, size),
            norm2=ones(size),
            gate_up=random(steps, 2 * hidden, size),
            down=random(steps, size, hidden),
        )

    narrow: tuple[NarrowLayer, ...] = ()
    wide: tuple[TemporalLayer, ...] = ()
    if eight_bit_weights:
        narrow = tuple(NarrowLayer.of(layer()) for _ in range(config.layers))
    else:
        wide = tuple(layer() for _ in range(config.layers))
    cards = [config.text_card + 1, *[config.audio_card + 1] * (2 * config.codebooks)]
    steps, size = config.codebooks, config.depth_dimension
    weights = MoshiWeights(
        embeddings=random(sum(cards), config.dimension),
        begins=torch.tensor([0, *accumulate(cards[:-1])], dtype=torch.int32, device=device),
        layers=wide,
        out_norm=ones(config.dimension),
        text_head=random(config.text_card, config.dimension),
        depth=DepthWeights(
            input=random(steps * size, config.dimension),
            text_embedding=random(config.text_card + 1, size),
            code_embeddings=random(steps - 1, config.audio_card + 1, size),
            layers=tuple(depth_layer() for _ in range(config.depth_layers)),
            heads=random(steps, config.audio_card, size),
        ),
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mimi.safetensors"
        codec = codec or MimiConfig(stored_codebooks=8)
        save_random(path, codec, seed=0)
        kind = torch.bfloat16 if narrow_codec else torch.float32
        loaded = Mimi.load(path, codec, device=device, dtype=kind)
    return Network(config, weights, loaded, narrow)
