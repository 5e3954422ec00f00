"""Pipelines that make videos: shaped as Wan 2.1 and 2.2, LTX-Video and HunyuanVideo are."""

from __future__ import annotations

import diffusers as df

from tests.fakes.tiny_diffusers import text_encoders, tokenizers
from tests.fakes.tiny_diffusers.weights import drawn


def wan() -> df.DiffusionPipeline:
    return _wan()


def wan22() -> df.DiffusionPipeline:
    """Two transformers: one for the noisy steps, one for the rest."""
    return _wan(transformer_2=_wan_transformer(24), boundary_ratio=0.875)


def ltx() -> df.DiffusionPipeline:
    t5 = tokenizers.t5_tokenizer()
    transformer = df.LTXVideoTransformer3DModel(
        in_channels=8,
        out_channels=8,
        patch_size=1,
        patch_size_t=1,
        num_attention_heads=4,
        attention_head_dim=8,
        cross_attention_dim=32,
        num_layers=1,
        caption_channels=32,
    )
    vae = df.AutoencoderKLLTXVideo(
        in_channels=3,
        out_channels=3,
        latent_channels=8,
        block_out_channels=(8, 8, 8, 8),
        decoder_block_out_channels=(8, 8, 8, 8),
        layers_per_block=(1, 1, 1, 1, 1),
        decoder_layers_per_block=(1, 1, 1, 1, 1),
        spatio_temporal_scaling=(True, True, False, False),
        decoder_spatio_temporal_scaling=(True, True, False, False),
        patch_size=1,
        patch_size_t=1,
        encoder_causal=True,
        decoder_causal=False,
    )
    return df.LTXPipeline(
        scheduler=df.FlowMatchEulerDiscreteScheduler(),
        vae=drawn(vae, 30),
        text_encoder=text_encoders.t5_encoder(t5, 31),
        tokenizer=t5,
        transformer=drawn(transformer, 32),
    )


def hunyuanvideo() -> df.DiffusionPipeline:
    clip, llama = tokenizers.clip_tokenizer(), tokenizers.llama_tokenizer()
    transformer = df.HunyuanVideoTransformer3DModel(
        in_channels=4,
        out_channels=4,
        num_attention_heads=2,
        attention_head_dim=10,
        num_layers=1,
        num_single_layers=1,
        num_refiner_layers=1,
        patch_size=1,
        patch_size_t=1,
        guidance_embeds=True,
        text_embed_dim=16,
        pooled_projection_dim=8,
        rope_axes_dim=(2, 4, 4),
    )
    vae = df.AutoencoderKLHunyuanVideo(
        latent_channels=4,
        down_block_types=("HunyuanVideoDownBlock3D",) * 4,
        up_block_types=("HunyuanVideoUpBlock3D",) * 4,
        block_out_channels=(8, 8, 8, 8),
        layers_per_block=1,
        norm_num_groups=4,
        scaling_factor=0.476986,
        spatial_compression_ratio=8,
        temporal_compression_ratio=4,
        mid_block_add_attention=True,
    )
    return df.HunyuanVideoPipeline(
        text_encoder=text_encoders.llama(llama, 40),
        tokenizer=llama,
        transformer=drawn(transformer, 41),
        vae=drawn(vae, 42),
        scheduler=df.FlowMatchEulerDiscreteScheduler(shift=7.0),
        text_encoder_2=text_encoders.clip_text(clip, 43, width=8),
        tokenizer_2=clip,
    )


def _wan(**more: object) -> df.DiffusionPipeline:
    t5 = tokenizers.t5_tokenizer()
    vae = df.AutoencoderKLWan(
        base_dim=4,
        z_dim=16,
        dim_mult=[1, 1, 1, 1],
        num_res_blocks=1,
        temperal_downsample=[False, True, True],
    )
    return df.WanPipeline(
        tokenizer=t5,
        text_encoder=text_encoders.t5_encoder(t5, 20, umt5=True),
        vae=drawn(vae, 21),
        scheduler=df.UniPCMultistepScheduler(
            prediction_type="flow_prediction", use_flow_sigmas=True, flow_shift=3.0
        ),
        transformer=_wan_transformer(22),
        **more,
    )


def _wan_transformer(seed: int) -> df.WanTransformer3DModel:
    transformer = df.WanTransformer3DModel(
        patch_size=(1, 2, 2),
        num_attention_heads=2,
        attention_head_dim=12,
        in_channels=16,
        out_channels=16,
        text_dim=32,
        freq_dim=256,
        ffn_dim=32,
        num_layers=2,
        cross_attn_norm=True,
        qk_norm="rms_norm_across_heads",
        rope_max_seq_len=32,
    )
    return drawn(transformer, seed)
