"""The tensors of a published checkpoint: their names and shapes. Needs no torch."""

from __future__ import annotations

from duologue.codecs.mimi.config import MimiConfig

Shapes = dict[str, tuple[int, ...]]
"""Name in the file -> shape."""


def checkpoint_shapes(config: MimiConfig) -> Shapes:
    """What a file for this configuration must hold, all of its codebooks included.

    Source:
        ``tokenizer-e351c8d8-checkpoint125.safetensors`` in ``kyutai/moshiko-pytorch-bf16``.
    """
    size, stride = config.dimension, config.positions_per_frame
    return {
        **_encoder(config),
        **_decoder(config),
        **_transformer(config, "encoder_transformer"),
        **_transformer(config, "decoder_transformer"),
        "downsample.conv.conv.conv.weight": (size, size, 2 * stride),
        "upsample.convtr.convtr.convtr.weight": (size, 1, 2 * stride),
        **_quantizer(config, "quantizer.rvq_first", 1),
        **_quantizer(config, "quantizer.rvq_rest", config.stored_codebooks - 1),
    }


def _encoder(config: MimiConfig) -> Shapes:
    channels = config.filters
    shapes = _convolution("encoder.model.0", channels, 1, config.kernel)
    for index, ratio in enumerate(reversed(config.ratios)):
        shapes |= _residual(config, f"encoder.model.{1 + 3 * index}", channels)
        name = f"encoder.model.{3 + 3 * index}"
        shapes |= _convolution(name, 2 * channels, channels, 2 * ratio)
        channels *= 2
    last = f"encoder.model.{2 + 3 * len(config.ratios)}"
    return shapes | _convolution(last, config.dimension, channels, config.last_kernel)


def _decoder(config: MimiConfig) -> Shapes:
    channels = config.filters * 2 ** len(config.ratios)
    shapes = _convolution("decoder.model.0", channels, config.dimension, config.kernel)
    for index, ratio in enumerate(config.ratios):
        name = f"decoder.model.{2 + 3 * index}.convtr.convtr"
        shapes |= {
            f"{name}.weight": (channels, channels // 2, 2 * ratio),
            f"{name}.bias": (channels // 2,),
        }
        channels //= 2
        shapes |= _residual(config, f"decoder.model.{3 + 3 * index}", channels)
    last = f"decoder.model.{2 + 3 * len(config.ratios)}"
    return shapes | _convolution(last, 1, channels, config.last_kernel)


def _convolution(name: str, channels_out: int, channels_in: int, kernel: int) -> Shapes:
    return {
        f"{name}.conv.conv.weight": (channels_out, channels_in, kernel),
        f"{name}.conv.conv.bias": (channels_out,),
    }


def _residual(config: MimiConfig, name: str, channels: int) -> Shapes:
    hidden = channels // config.compression
    return {
        **_convolution(f"{name}.block.1", hidden, channels, config.residual_kernel),
        **_convolution(f"{name}.block.3", channels, hidden, 1),
    }


def _transformer(config: MimiConfig, name: str) -> Shapes:
    size, hidden = config.dimension, config.feed_forward
    shapes: Shapes = {}
    for index in range(config.layers):
        layer = f"{name}.transformer.layers.{index}"
        shapes |= {
            f"{layer}.self_attn.in_proj_weight": (3 * size, size),
            f"{layer}.self_attn.out_proj.weight": (size, size),
            f"{layer}.linear1.weight": (hidden, size),
            f"{layer}.linear2.weight": (size, hidden),
            **{f"{layer}.norm{n}.{part}": (size,) for n in (1, 2) for part in ("weight", "bias")},
            **{f"{layer}.layer_scale_{n}.scale": (size,) for n in (1, 2)},
        }
    return shapes


def _quantizer(config: MimiConfig, name: str, codebooks: int) -> Shapes:
    entries, size = config.codebook_size, config.codebook_dimension
    shapes: Shapes = {
        f"{name}.input_proj.weight": (size, config.dimension, 1),
        f"{name}.output_proj.weight": (config.dimension, size, 1),
    }
    for index in range(codebooks):
        codebook = f"{name}.vq.layers.{index}._codebook"
        shapes |= {
            f"{codebook}._initialized": (1,),
            f"{codebook}.cluster_usage": (entries,),
            f"{codebook}.embedding_sum": (entries, size),
        }
    return shapes
