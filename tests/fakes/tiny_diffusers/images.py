"""Pipelines that make images: shaped as Stable Diffusion 3, Flux and Qwen-Image are."""

from __future__ import annotations

import diffusers as df

from tests.fakes.tiny_diffusers import text_encoders, tokenizers
from tests.fakes.tiny_diffusers.weights import drawn


def sd3() -> df.DiffusionPipeline:
    clip, t5 = tokenizers.clip_tokenizer(), tokenizers.t5_tokenizer()
    transformer = df.SD3Transformer2DModel(
        sample_size=32,
        patch_size=2,
        in_channels=16,  # fewer, and the library refuses to fill in masks
        out_channels=16,
        num_layers=2,
        attention_head_dim=8,
        num_attention_heads=4,
        joint_attention_dim=32,
        caption_projection_dim=32,
        pooled_projection_dim=64,
        pos_embed_max_size=96,
        dual_attention_layers=(0,),
        qk_norm="rms_norm",
    )
    return df.StableDiffusion3Pipeline(
        transformer=drawn(transformer, 1),
        scheduler=df.FlowMatchEulerDiscreteScheduler(shift=3.0),
        vae=image_vae(2, latent_channels=16),
        text_encoder=text_encoders.clip_text(clip, 3, projected=True),
        tokenizer=clip,
        text_encoder_2=text_encoders.clip_text(clip, 4, projected=True),
        tokenizer_2=clip,
        text_encoder_3=text_encoders.t5_encoder(t5, 5),
        tokenizer_3=t5,
    )


def flux() -> df.DiffusionPipeline:
    clip, t5 = tokenizers.clip_tokenizer(), tokenizers.t5_tokenizer()
    transformer = df.FluxTransformer2DModel(
        patch_size=1,
        in_channels=16,
        num_layers=1,
        num_single_layers=1,
        attention_head_dim=16,
        num_attention_heads=2,
        joint_attention_dim=32,
        pooled_projection_dim=32,
        guidance_embeds=True,
        axes_dims_rope=(4, 4, 8),
    )
    return df.FluxPipeline(
        scheduler=df.FlowMatchEulerDiscreteScheduler(shift=3.0, use_dynamic_shifting=True),
        vae=image_vae(6),
        text_encoder=text_encoders.clip_text(clip, 7),
        tokenizer=clip,
        text_encoder_2=text_encoders.t5_encoder(t5, 8),
        tokenizer_2=t5,
        transformer=drawn(transformer, 9),
    )


def qwenimage() -> df.DiffusionPipeline:
    tokenizer = tokenizers.qwen_tokenizer()
    transformer = df.QwenImageTransformer2DModel(
        patch_size=2,
        in_channels=16,
        out_channels=4,
        num_layers=2,
        attention_head_dim=16,
        num_attention_heads=3,
        joint_attention_dim=32,
        axes_dims_rope=(8, 4, 4),
    )
    vae = df.AutoencoderKLQwenImage(
        base_dim=8,
        z_dim=4,
        dim_mult=[1, 2, 4, 4],
        num_res_blocks=1,
        temperal_downsample=[False, True, True],
        latents_mean=[0.0] * 4,
        latents_std=[1.0] * 4,
    )
    return df.QwenImagePipeline(
        scheduler=df.FlowMatchEulerDiscreteScheduler(use_dynamic_shifting=True),
        vae=drawn(vae, 10),
        text_encoder=text_encoders.qwen_vision_language(tokenizer, 11),
        tokenizer=tokenizer,
        transformer=drawn(transformer, 12),
    )


def image_vae(seed: int, latent_channels: int = 4) -> df.AutoencoderKL:
    """Eight pixels a latent, as the large ones have."""
    vae = df.AutoencoderKL(
        in_channels=3,
        out_channels=3,
        down_block_types=("DownEncoderBlock2D",) * 4,
        up_block_types=("UpDecoderBlock2D",) * 4,
        block_out_channels=(4, 4, 4, 4),
        layers_per_block=1,
        latent_channels=latent_channels,
        norm_num_groups=1,
        sample_size=64,
        scaling_factor=1.5,
        shift_factor=0.06,
        use_quant_conv=False,
        use_post_quant_conv=False,
    )
    return drawn(vae, seed)
