"""The readers of prompts, a few thousand weights each."""

from __future__ import annotations

from typing import Any

import torch
import transformers as tf

from tests.fakes.tiny_diffusers.weights import drawn


def clip_text(
    tokenizer: Any, seed: int, *, projected: bool = False, width: int = 32
) -> torch.nn.Module:
    config = tf.CLIPTextConfig(
        vocab_size=len(tokenizer),
        hidden_size=width,
        intermediate_size=36,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=77,
        projection_dim=32,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    kind = tf.CLIPTextModelWithProjection if projected else tf.CLIPTextModel
    return drawn(kind(config), seed)


def t5_encoder(tokenizer: Any, seed: int, *, umt5: bool = False) -> torch.nn.Module:
    sizes = {
        "vocab_size": len(tokenizer),
        "d_model": 32,
        "d_kv": 8,
        "d_ff": 36,
        "num_layers": 2,
        "num_heads": 4,
        "relative_attention_num_buckets": 8,
        "relative_attention_max_distance": 32,
        "feed_forward_proj": "gated-gelu",
        "tie_word_embeddings": False,
    }
    if umt5:
        return drawn(tf.UMT5EncoderModel(tf.UMT5Config(**sizes)), seed)
    return drawn(tf.T5EncoderModel(tf.T5Config(**sizes)), seed)


def qwen_vision_language(tokenizer: Any, seed: int) -> torch.nn.Module:
    config = tf.Qwen2_5_VLConfig(
        text_config={
            "vocab_size": len(tokenizer),
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "max_position_embeddings": 2048,
            "rope_parameters": {
                "rope_type": "default",
                "rope_theta": 1e6,
                "mrope_section": [1, 1, 2],
            },
        },
        vision_config={
            "depth": 2,
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_heads": 4,
            "out_hidden_size": 32,
            "fullatt_block_indexes": [1],
            "window_size": 112,
        },
        image_token_id=1,
        video_token_id=2,
        vision_start_token_id=0,
        vision_end_token_id=0,
        vision_token_id=0,
    )
    return drawn(tf.Qwen2_5_VLForConditionalGeneration(config), seed)


def llama(tokenizer: Any, seed: int) -> torch.nn.Module:
    config = tf.LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=16,
        intermediate_size=36,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=1024,
        pad_token_id=1,
        bos_token_id=2,
        eos_token_id=3,
    )
    return drawn(tf.LlamaModel(config), seed)
