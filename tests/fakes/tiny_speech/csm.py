"""Shaped as ``sesame/csm-1b``: a backbone, a depth decoder, and Mimi."""

from __future__ import annotations

from pathlib import Path

import torch
from transformers import CsmConfig, CsmForConditionalGeneration

from tests.fakes.tiny_diffusers.weights import drawn
from tests.fakes.tiny_speech.tokenizers import byte_tokenizer, save

SPECIAL = ("<|pad|>", "<|begin_of_text|>", "<|end_of_text|>", "<|AUDIO|>", "<|audio_eos|>")
BOOKS, CODES = 4, 64
_MIMI = {
    "model_type": "mimi",
    "hidden_size": 32,
    "num_filters": 4,
    "upsampling_ratios": [8, 6, 5, 4],
    "codebook_size": CODES,
    "codebook_dim": 16,
    "vector_quantization_hidden_dimension": 16,
    "num_quantizers": BOOKS,
    "upsample_groups": 32,
    "num_hidden_layers": 2,
    "intermediate_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "head_dim": 8,
    "sliding_window": 10,
    "layer_scale_initial_scale": 0.1,
}


def _rope(original: int) -> dict[str, object]:
    return {
        "rope_type": "llama3",
        "rope_theta": 500_000.0,
        "factor": 32.0,
        "low_freq_factor": 0.125,
        "high_freq_factor": 0.5,
        "original_max_position_embeddings": original,
    }


def csm(folder: Path) -> None:
    config = CsmConfig(
        num_codebooks=BOOKS,
        vocab_size=CODES + 3,
        text_vocab_size=300,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=512,
        codebook_pad_token_id=CODES + 2,
        codebook_eos_token_id=0,
        pad_token_id=0,
        bos_token_id=1,
        audio_token_id=3,
        audio_eos_token_id=4,
        rope_parameters=_rope(64),
        depth_decoder_config={
            "num_codebooks": BOOKS,
            "backbone_hidden_size": 32,
            "vocab_size": CODES + 3,
            "hidden_size": 16,
            "intermediate_size": 32,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "num_key_value_heads": 1,
            "max_position_embeddings": 33,
            "rope_parameters": _rope(16),
        },
        codec_config=_MIMI,
    )
    model = drawn(CsmForConditionalGeneration(config), 70)
    with torch.no_grad():  # what is no code of Mimi is not drawn, as in a trained model
        model.lm_head.weight[CODES:] = 0
        model.depth_decoder.codebooks_head.weight[..., CODES:] = 0
    generator = torch.Generator().manual_seed(71)
    for name, buffer in sorted(model.codec_model.named_buffers()):
        if name.endswith("embed_sum"):
            buffer.copy_(torch.randn(buffer.shape, generator=generator))
    model.save_pretrained(folder)
    save(byte_tokenizer(SPECIAL, ("<|begin_of_text|>", "<|end_of_text|>")), folder)
