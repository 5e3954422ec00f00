"""Pipelines that make sounds: shaped as Stable Audio and AudioLDM 2 are."""

from __future__ import annotations

import diffusers as df
import transformers as tf
from diffusers.pipelines.stable_audio.modeling_stable_audio import StableAudioProjectionModel

from tests.fakes.tiny_diffusers import text_encoders, tokenizers
from tests.fakes.tiny_diffusers.weights import drawn


def stableaudio() -> df.DiffusionPipeline:
    t5 = tokenizers.t5_tokenizer()
    transformer = df.StableAudioDiTModel(
        sample_size=4096,
        in_channels=3,
        out_channels=3,
        num_layers=2,
        attention_head_dim=4,
        num_attention_heads=2,
        num_key_value_attention_heads=2,
        cross_attention_dim=4,
        time_proj_dim=8,
        global_states_input_dim=8,
        cross_attention_input_dim=4,
    )
    vae = df.AutoencoderOobleck(
        encoder_hidden_size=6,
        downsampling_ratios=[4, 8],
        decoder_channels=3,
        decoder_input_channels=3,
        audio_channels=2,
        channel_multiples=[2, 4],
        sampling_rate=8000,
    )
    projection = StableAudioProjectionModel(
        text_encoder_dim=32, conditioning_dim=4, min_value=0, max_value=32
    )
    return df.StableAudioPipeline(
        vae=drawn(vae, 50),
        text_encoder=text_encoders.t5_encoder(t5, 51),
        projection_model=drawn(projection, 52),
        tokenizer=t5,
        transformer=drawn(transformer, 53),
        scheduler=df.EDMDPMSolverMultistepScheduler(
            solver_order=2,
            prediction_type="v_prediction",
            sigma_data=1.0,
            sigma_schedule="exponential",
        ),
    )


def audioldm2() -> df.DiffusionPipeline:
    t5, roberta = tokenizers.t5_tokenizer(), tokenizers.roberta_tokenizer()
    language_model = drawn(
        tf.GPT2LMHeadModel(
            tf.GPT2Config(
                n_embd=16,
                n_ctx=99,
                n_head=2,
                n_layer=2,
                n_positions=99,
                vocab_size=64,
                bos_token_id=0,
                eos_token_id=1,
            )
        ),
        60,
    )
    language_model.config.max_new_tokens = 8
    unet = df.AudioLDM2UNet2DConditionModel(
        block_out_channels=(8, 16),
        layers_per_block=1,
        norm_num_groups=8,
        sample_size=32,
        in_channels=4,
        out_channels=4,
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
        cross_attention_dim=[[None, 16, 32], [None, 16, 32]],
    )
    vae = df.AutoencoderKL(
        in_channels=1,
        out_channels=1,
        down_block_types=("DownEncoderBlock2D",) * 2,
        up_block_types=("UpDecoderBlock2D",) * 2,
        block_out_channels=(8, 16),
        norm_num_groups=8,
        latent_channels=4,
        scaling_factor=0.5,
    )
    return df.AudioLDM2Pipeline(
        vae=drawn(vae, 61),
        text_encoder=_clap(len(roberta)),
        text_encoder_2=text_encoders.t5_encoder(t5, 63),
        projection_model=drawn(
            df.AudioLDM2ProjectionModel(
                text_encoder_dim=16, text_encoder_1_dim=32, langauge_model_dim=16
            ),
            64,
        ),
        language_model=language_model,
        tokenizer=roberta,
        tokenizer_2=t5,
        feature_extractor=tf.ClapFeatureExtractor(feature_size=8, hop_length=7900),
        unet=drawn(unet, 65),
        scheduler=df.DDIMScheduler(
            beta_start=0.00085,
            beta_end=0.012,
            beta_schedule="scaled_linear",
            clip_sample=False,
            set_alpha_to_one=False,
        ),
        vocoder=_vocoder(),
    )


def _clap(vocabulary: int) -> tf.ClapModel:
    text = {
        "vocab_size": vocabulary,
        "hidden_size": 8,
        "intermediate_size": 36,
        "num_hidden_layers": 1,
        "num_attention_heads": 1,
        "projection_dim": 16,
        "max_position_embeddings": 90,
        "pad_token_id": 1,
        "bos_token_id": 0,
        "eos_token_id": 2,
    }
    audio = {
        "spec_size": 8,
        "window_size": 4,
        "num_mel_bins": 8,
        "intermediate_size": 36,
        "hidden_size": 8,
        "patch_size": 2,
        "num_hidden_layers": 2,
        "num_attention_heads": [2, 2],
        "depths": [2, 2],
        "num_heads": [2, 2],
        "patch_embeds_hidden_size": 8,
        "projection_dim": 16,
        "num_classes": 8,
    }
    config = tf.ClapConfig(text_config=text, audio_config=audio, projection_dim=16)
    return drawn(tf.ClapModel(config), 62)


def _vocoder() -> tf.SpeechT5HifiGan:
    config = tf.SpeechT5HifiGanConfig(
        model_in_dim=8,
        sampling_rate=16000,
        upsample_initial_channel=16,
        upsample_rates=[2, 2],
        upsample_kernel_sizes=[4, 4],
        resblock_kernel_sizes=[3, 7],
        resblock_dilation_sizes=[[1, 3, 5], [1, 3, 5]],
        normalize_before=False,
    )
    return drawn(tf.SpeechT5HifiGan(config), 66)
