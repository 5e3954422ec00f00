"""The decoder of a Mimi that transformers wrote, alone or as a part of a larger checkpoint.

The network is the same; names differ, queries and keys are stored apart, and their components in
another order: transformers turns component i with i + D / 2, Moshi's layout with its neighbour.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from duologue.codecs.mimi.config import MimiConfig
from duologue.codecs.mimi.convolution import DepthwiseUpsampling
from duologue.codecs.mimi.quantizer import SplitQuantizer
from duologue.codecs.mimi.seanet import decoder_stages
from duologue.codecs.mimi.streams import DecoderWeights
from duologue.codecs.mimi.transformer import TransformerLayer
from duologue.core.errors import ConfigError

Tensors = Callable[[str], Tensor]
"""Reads a tensor by its name in the file."""

_FIXED: Mapping[str, Any] = {
    "audio_channels": 1,
    "hidden_act": "gelu",
    "norm_eps": 1e-5,
    "num_residual_layers": 1,
    "num_semantic_quantizers": 1,
    "pad_mode": "constant",
    "trim_right_ratio": 1.0,
    "use_causal_conv": True,
    "use_conv_shortcut": False,
}
"""What every published Mimi has, and the network here is built for."""

_RULES = (
    (r"^decoder\.model\.(\d+)\.(?:conv\.conv|convtr\.convtr)\.", r"decoder.layers.\1.conv."),
    (r"^decoder\.model\.(\d+)\.block\.(\d)\.conv\.conv\.", r"decoder.layers.\1.block.\2.conv."),
    (r"^upsample\.convtr\.convtr\.convtr\.", "upsample.conv."),
    (r"^decoder_transformer\.transformer\.", "decoder_transformer."),
    (r"\.self_attn\.out_proj\.", ".self_attn.o_proj."),
    (r"\.linear([12])\.", r".mlp.fc\1."),
    (r"\.norm1\.", ".input_layernorm."),
    (r"\.norm2\.", ".post_attention_layernorm."),
    (r"\.layer_scale_1\.", ".self_attn_layer_scale."),
    (r"\.layer_scale_2\.", ".mlp_layer_scale."),
    (r"^quantizer\.rvq_first\.", "quantizer.semantic_residual_vector_quantizer."),
    (r"^quantizer\.rvq_rest\.", "quantizer.acoustic_residual_vector_quantizer."),
    (r"\.vq\.layers\.(\d+)\._codebook\.", r".layers.\1.codebook."),
    (r"\.embedding_sum$", ".embed_sum"),
)
"""From Moshi's layout, as far as the decoder goes."""

_IN_PROJ = ".self_attn.in_proj_weight"


def load_decoder(section: Mapping[str, Any], tensors: Tensors, prefix: str = "") -> DecoderWeights:
    """Take over the weights of a decoder.

    Args:
        section: Its part of ``config.json``.
        prefix: Of its names in the file.

    Raises:
        ConfigError: It is no Mimi of the published kind, or a tensor is missing.
    """
    config = read_config(section)

    def named(name: str) -> Tensor:
        if name.endswith(_IN_PROJ):
            return _in_proj(tensors, prefix + _renamed(name.removesuffix(_IN_PROJ) + "."), config)
        return tensors(prefix + _renamed(name)).float()

    names = (f"decoder_transformer.transformer.layers.{index}" for index in range(config.layers))
    return DecoderWeights(
        config,
        decoder_stages(config, named),
        tuple(TransformerLayer.load(named, name) for name in names),
        DepthwiseUpsampling.of(named("upsample.convtr.convtr.convtr.weight")),
        SplitQuantizer.load(config, named),
    )


def read_config(section: Mapping[str, Any]) -> MimiConfig:
    """Read the sizes.

    Raises:
        ConfigError: Something is missing, or of a kind that the network here has not.
    """
    for key, wanted in _FIXED.items():
        if section.get(key, wanted) != wanted:
            raise ConfigError(f"the Mimi has {key} {section[key]!r}; only {wanted!r} is known")
    try:
        books = int(section["num_quantizers"])
        return MimiConfig(
            sample_rate_hz=int(section["sampling_rate"]),
            filters=int(section["num_filters"]),
            ratios=tuple(int(each) for each in section["upsampling_ratios"]),
            kernel=int(section["kernel_size"]),
            last_kernel=int(section["last_kernel_size"]),
            residual_kernel=int(section["residual_kernel_size"]),
            compression=int(section["compress"]),
            dimension=int(section["hidden_size"]),
            layers=int(section["num_hidden_layers"]),
            heads=int(section["num_attention_heads"]),
            feed_forward=int(section["intermediate_size"]),
            context=int(section["sliding_window"]),
            rope_base=_rope_base(section),
            codebook_size=int(section["codebook_size"]),
            codebook_dimension=int(section["codebook_dim"]),
            stored_codebooks=books,
            codebooks=books,
        )
    except KeyError as exc:
        raise ConfigError(f"config.json does not say {exc.args[0]} of the Mimi") from exc
    except ValueError as exc:
        raise ConfigError(f"the Mimi of config.json cannot be: {exc}") from exc


def _rope_base(section: Mapping[str, Any]) -> float:
    rope = section.get("rope_parameters") or {}
    return float(rope.get("rope_theta") or section["rope_theta"])


def _renamed(name: str) -> str:
    for pattern, replacement in _RULES:
        name = re.sub(pattern, replacement, name)
    return name


def _in_proj(tensors: Tensors, name: str, config: MimiConfig) -> Tensor:
    query, key, value = (tensors(f"{name}self_attn.{part}_proj.weight").float() for part in "qkv")
    return torch.cat((_neighbours(query, config), _neighbours(key, config), value))


def _neighbours(weight: Tensor, config: MimiConfig) -> Tensor:
    """Put components that turn together side by side."""
    halves = weight.unflatten(0, (config.heads, 2, config.head_dimension // 2))
    return halves.transpose(1, 2).flatten(0, 2)
