"""Shaped as Qwen3-Omni: the thinker is there because its embeddings are the talker's text."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from tokenizers import Tokenizer
from transformers import (
    Qwen3OmniMoeConfig,
    Qwen3OmniMoeForConditionalGeneration,
    WhisperFeatureExtractor,
)
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

from tests.fakes.tiny_diffusers.weights import drawn
from tests.fakes.tiny_speech.tokenizers import byte_tokenizer, save

SPECIAL = (
    "<|audio_end|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|audio_start|>",
    "<|audio_pad|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|image_pad|>",
    "<|video_pad|>",
    "<tts_pad>",
    "<tts_text_bos>",
    "<tts_text_eod>",
    "system",
    "user",
    "assistant",
)
TEMPLATE = """\
{%- if tools %}
{{- '<|im_start|>system\n' }}
{%- if messages[0].role == 'system' %}{{- messages[0].content + '\n\n' }}{%- endif %}
{{- 'Call with a name and arguments:\n<tools>' }}
{%- for tool in tools %}{{- '\n' }}{{- tool | tojson }}{%- endfor %}
{{- '\n</tools><|im_end|>\n' }}
{%- endif %}
{%- for message in messages %}
{%- if message.role == 'tool' %}
{{- '<|im_start|>user\n<tool_response>\n' + message.content + '\n</tool_response><|im_end|>\n' }}
{%- elif message.role != 'system' or not (tools and loop.first) %}
{{- '<|im_start|>' + message.role + '\n' }}
{%- if message.content is string %}{{- message.content }}
{%- else %}
{%- for part in message.content %}
{%- if part.type == 'audio' %}{{- '<|audio_start|><|audio_pad|><|audio_end|>' }}
{%- elif part.type == 'image' %}{{- '<|vision_start|><|image_pad|><|vision_end|>' }}
{%- else %}{{- part.text }}{%- endif %}
{%- endfor %}
{%- endif %}
{%- for call in message.tool_calls or [] %}
{{- '\n<tool_call>\n{"name": "' + call.function.name + '", "arguments": ' }}
{{- call.function.arguments | tojson }}{{- '}\n</tool_call>' }}
{%- endfor %}
{{- '<|im_end|>\n' }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\n' }}{%- endif %}
"""
"""How a conversation is written; calls in the form that Qwen's models have learnt."""

BOOKS, CODES, SPECIAL_CODES = 4, 64, 1024
"""The last 1024 first codes mean no sound; all but the end are never drawn."""

END = CODES + 1
WINDOW = 12
_ROPE = {
    "rope_type": "default",
    "rope_theta": 1_000_000.0,
    "mrope_section": [2, 3, 3],
    "mrope_interleaved": True,
}
_SMALL = {
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 4096,
}


def _thinker(tokenizer: Tokenizer) -> dict[str, object]:
    return {
        "text_config": {
            **_SMALL,
            "vocab_size": tokenizer.get_vocab_size(),
            "hidden_size": 48,
            "intermediate_size": 64,
            "head_dim": 16,
            "moe_intermediate_size": 16,
            "num_experts": 2,
            "num_experts_per_tok": 1,
            "rope_parameters": dict(_ROPE),
        },
        "audio_config": {
            "num_mel_bins": 128,
            "encoder_layers": 1,
            "encoder_attention_heads": 2,
            "encoder_ffn_dim": 32,
            "d_model": 16,
            "max_source_positions": 100,
            "n_window": 50,
            "output_dim": 48,
            "n_window_infer": 800,
            "downsample_hidden_size": 8,
        },
        "vision_config": {
            "depth": 1,
            "hidden_size": 16,
            "intermediate_size": 32,
            "num_heads": 2,
            "out_hidden_size": 48,
            "num_position_embeddings": 16,
            "deepstack_visual_indexes": [0],
        },
        "audio_token_id": tokenizer.token_to_id("<|audio_pad|>"),
        "image_token_id": tokenizer.token_to_id("<|image_pad|>"),
        "video_token_id": tokenizer.token_to_id("<|video_pad|>"),
        "audio_start_token_id": tokenizer.token_to_id("<|audio_start|>"),
        "vision_start_token_id": tokenizer.token_to_id("<|vision_start|>"),
        "vision_end_token_id": tokenizer.token_to_id("<|vision_end|>"),
        "user_token_id": tokenizer.token_to_id("user"),
        "position_id_per_seconds": 13,
    }


def _talker(tokenizer: Tokenizer) -> dict[str, object]:
    return {
        "text_config": {
            **_SMALL,
            "vocab_size": CODES + SPECIAL_CODES,
            "hidden_size": 32,
            "intermediate_size": 48,
            "head_dim": 16,
            "moe_intermediate_size": 16,
            "num_experts": 4,
            "num_experts_per_tok": 2,
            "norm_topk_prob": True,
            "shared_expert_intermediate_size": 16,
            "rope_parameters": dict(_ROPE),
        },
        "code_predictor_config": {
            **_SMALL,
            "vocab_size": CODES,
            "hidden_size": 32,
            "intermediate_size": 48,
            "head_dim": 8,
            "num_code_groups": BOOKS,
        },
        "num_code_groups": BOOKS,
        "thinker_hidden_size": 48,
        "accept_hidden_layer": 1,
        "spatial_merge_size": 2,
        "codec_eos_token_id": END,
        "codec_nothink_id": CODES + 2,
        "codec_think_bos_id": CODES + 3,
        "codec_think_eos_id": CODES + 4,
        "codec_pad_id": CODES + 5,
        "codec_bos_id": CODES + 6,
        "audio_token_id": tokenizer.token_to_id("<|audio_pad|>"),
        "image_token_id": tokenizer.token_to_id("<|image_pad|>"),
        "video_token_id": tokenizer.token_to_id("<|video_pad|>"),
        "vision_start_token_id": tokenizer.token_to_id("<|vision_start|>"),
        "audio_start_token_id": tokenizer.token_to_id("<|audio_start|>"),
        "position_id_per_seconds": 13,
        "speaker_id": {"ethan": CODES + 10, "chelsie": CODES + 11},
    }


_CODE2WAV = {
    "codebook_size": CODES,
    "num_quantizers": BOOKS,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "sliding_window": WINDOW,
    "upsample_rates": (8, 5, 4, 3),
    "upsampling_ratios": (2, 2),
    "decoder_dim": 32,
    "max_position_embeddings": 8000,
}


def qwen3_omni(folder: Path) -> None:
    tokenizer = byte_tokenizer(SPECIAL)
    number = tokenizer.token_to_id
    config = Qwen3OmniMoeConfig(
        thinker_config=_thinker(tokenizer),
        talker_config=_talker(tokenizer),
        code2wav_config=_CODE2WAV,
        enable_audio_output=True,
        im_start_token_id=number("<|im_start|>"),
        im_end_token_id=number("<|im_end|>"),
        tts_pad_token_id=number("<tts_pad>"),
        tts_bos_token_id=number("<tts_text_bos>"),
        tts_eos_token_id=number("<tts_text_eod>"),
        system_token_id=number("system"),
        user_token_id=number("user"),
        assistant_token_id=number("assistant"),
    )
    model = drawn(Qwen3OmniMoeForConditionalGeneration(config), 80)
    with torch.no_grad():
        # Else it would find one word over and over.
        embedded = model.thinker.get_input_embeddings().weight
        model.thinker.lm_head.weight.copy_(embedded.roll(1, dims=0) / embedded.std())
        for name, weight in model.code2wav.named_parameters():
            if name.endswith((".alpha", ".beta")):  # logarithms
                weight.zero_()
            elif name.endswith((".gamma", "layer_scale.scale")):
                weight.fill_(0.1)
            elif ".decoder." in f".{name}" and name.endswith("conv.weight"):
                weight.mul_(0.5)  # else it would be as loud as it is sensitive
    model.save_pretrained(folder)
    save(tokenizer, folder)
    (folder / "chat_template.jinja").write_text(TEMPLATE)
    eyes = Qwen2VLImageProcessorPil(
        patch_size=16,
        merge_size=2,
        temporal_patch_size=2,
        min_pixels=32 * 32,
        max_pixels=96 * 96,
    )
    eyes.save_pretrained(folder)
    file = folder / "preprocessor_config.json"
    seen = json.loads(file.read_text())
    file.write_text(json.dumps({**WhisperFeatureExtractor(feature_size=128).to_dict(), **seen}))
