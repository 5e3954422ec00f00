"""Pipelines of the published networks' shapes with random weights, made on the device itself.

The transformers and the VAE are as large as the published ones; the readers of words are two layers
of the true width, since they run once for an image and take a while to make. Speed does not depend
on the values of weights; what is drawn looks like nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import diffusers as df
import torch
import transformers as tf

from tests.fakes.tiny_diffusers import tokenizers

SEED = 5


@dataclass(frozen=True)
class Shape:
    """One pipeline.

    Args:
        name: As in the tables.
        make: Makes it where torch makes tensors now.
        steps: Of denoising, as the pipeline is used.
        guidance: For SD3, above 1 doubles the batch.
    """

    name: str
    make: Callable[[], Any]
    steps: int
    guidance: float


def _words(clip: Any, width: int, *, projected: bool) -> torch.nn.Module:
    config = tf.CLIPTextConfig(
        vocab_size=len(clip),
        hidden_size=width,
        intermediate_size=width,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=77,
        projection_dim=width,
        bos_token_id=clip.bos_token_id,
        eos_token_id=clip.eos_token_id,
        pad_token_id=clip.pad_token_id,
    )
    kind = tf.CLIPTextModelWithProjection if projected else tf.CLIPTextModel
    return kind(config)


def _sentences(t5: Any, width: int) -> torch.nn.Module:
    config = tf.T5Config(
        vocab_size=len(t5),
        d_model=width,
        d_kv=16,
        d_ff=2 * width,
        num_layers=2,
        num_heads=4,
        feed_forward_proj="gated-gelu",
        tie_word_embeddings=False,
    )
    return tf.T5EncoderModel(config)


def _vae(channels: tuple[int, ...], groups: int, layers: int) -> df.AutoencoderKL:
    """Eight pixels a latent."""
    return df.AutoencoderKL(
        in_channels=3,
        out_channels=3,
        down_block_types=("DownEncoderBlock2D",) * 4,
        up_block_types=("UpDecoderBlock2D",) * 4,
        block_out_channels=channels,
        layers_per_block=layers,
        latent_channels=16,
        norm_num_groups=groups,
        sample_size=1024,
        scaling_factor=1.5305,
        shift_factor=0.0609,
        use_quant_conv=False,
        use_post_quant_conv=False,
    )


def sd3(*, tiny: bool = False) -> df.DiffusionPipeline:
    """As Stable Diffusion 3 medium: 2.0 billion weights."""
    clip, t5 = tokenizers.clip_tokenizer(), tokenizers.t5_tokenizer()
    layers, heads, words, sentences = (2, 2, (16, 16), 64) if tiny else (24, 24, (768, 1280), 4096)
    transformer = df.SD3Transformer2DModel(
        sample_size=128,
        patch_size=2,
        in_channels=16,
        out_channels=16,
        num_layers=layers,
        attention_head_dim=64,
        num_attention_heads=heads,
        joint_attention_dim=sentences,
        caption_projection_dim=64 * heads,
        pooled_projection_dim=sum(words),
        pos_embed_max_size=192,
    )
    return df.StableDiffusion3Pipeline(
        transformer=transformer,
        scheduler=df.FlowMatchEulerDiscreteScheduler(shift=3.0),
        vae=_vae((8, 8, 8, 8), 4, 1) if tiny else _vae((128, 256, 512, 512), 32, 2),
        text_encoder=_words(clip, words[0], projected=True),
        tokenizer=clip,
        text_encoder_2=_words(clip, words[1], projected=True),
        tokenizer_2=clip,
        text_encoder_3=_sentences(t5, sentences),
        tokenizer_3=t5,
    )


def flux(*, tiny: bool = False) -> df.DiffusionPipeline:
    """As Flux 1 dev: 11.9 billion weights."""
    clip, t5 = tokenizers.clip_tokenizer(), tokenizers.t5_tokenizer()
    double, single, heads = (2, 2, 2) if tiny else (19, 38, 24)
    words, sentences = (16, 64) if tiny else (768, 4096)
    transformer = df.FluxTransformer2DModel(
        patch_size=1,
        in_channels=64,
        num_layers=double,
        num_single_layers=single,
        attention_head_dim=128,
        num_attention_heads=heads,
        joint_attention_dim=sentences,
        pooled_projection_dim=words,
        guidance_embeds=True,
        axes_dims_rope=(16, 56, 56),
    )
    return df.FluxPipeline(
        scheduler=df.FlowMatchEulerDiscreteScheduler(shift=3.0, use_dynamic_shifting=True),
        vae=_vae((8, 8, 8, 8), 4, 1) if tiny else _vae((128, 256, 512, 512), 32, 2),
        text_encoder=_words(clip, words, projected=False),
        tokenizer=clip,
        text_encoder_2=_sentences(t5, sentences),
        tokenizer_2=t5,
        transformer=transformer,
    )


SHAPES: Mapping[str, Mapping[str, Shape]] = {
    "real": {
        "sd3": Shape("SD3-shaped, 2.0B", sd3, 28, 7.0),
        "flux": Shape("Flux-shaped, 11.9B", flux, 20, 3.5),
    },
    "tiny": {
        "sd3": Shape("SD3-shaped, tiny", lambda: sd3(tiny=True), 6, 7.0),
        "flux": Shape("Flux-shaped, tiny", lambda: flux(tiny=True), 6, 3.5),
    },
}


def make(shape: Shape, device: str) -> Any:
    """Make a pipeline; the same weights each time."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.bfloat16 if device.startswith("cuda") else torch.float32)
    try:
        torch.manual_seed(SEED)
        with torch.device(device):
            pipe = shape.make()
    finally:
        torch.set_default_dtype(before)
    for part in pipe.components.values():
        if isinstance(part, torch.nn.Module):
            part.eval().requires_grad_(False)
    # What was made in another type or place, as tables of positions.
    return pipe.to(device, torch.bfloat16 if device.startswith("cuda") else torch.float32)


def weights_of(pipe: Any) -> float:
    """Count those of the transformer, in billions."""
    return round(sum(each.numel() for each in pipe.transformer.parameters()) / 1e9, 2)
