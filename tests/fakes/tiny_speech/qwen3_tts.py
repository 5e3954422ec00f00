"""Shaped as ``Qwen/Qwen3-TTS-12Hz-0.6B-CustomVoice``, and what its package makes of a text.

A program for the Python that has ``qwen-tts``: ``python -m tests.fakes.tiny_speech.qwen3_tts
FOLDER`` writes the checkpoint, and the codes and the sound of ``TEXT`` beside it.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import torch

from tests.fakes.tiny_speech.without_torchaudio import PINNED

# isort: split
from qwen_tts.core.models import Qwen3TTSConfig, Qwen3TTSForConditionalGeneration
from qwen_tts.core.tokenizer_12hz.configuration_qwen3_tts_tokenizer_v2 import (
    Qwen3TTSTokenizerV2Config,
)
from qwen_tts.core.tokenizer_12hz.modeling_qwen3_tts_tokenizer_v2 import Qwen3TTSTokenizerV2Model

from tests.fakes.tiny_diffusers.weights import drawn
from tests.fakes.tiny_speech.qwen3_tts_text import EXPECTED, FRAMES, INSTRUCTIONS, TEXT
from tests.fakes.tiny_speech.tokenizers import byte_tokenizer, save

SPECIAL = (
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<tts_pad>",
    "<tts_text_bos>",
    "<tts_text_eod>",
    "user",
    "assistant",
)
BOOKS, CODES, SPECIAL_CODES = 4, 64, 1024
_SMALL = {
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 4096,
}
_TALKER = {
    **_SMALL,
    "vocab_size": CODES + SPECIAL_CODES,
    "hidden_size": 32,
    "intermediate_size": 48,
    "text_hidden_size": 40,
    "num_code_groups": BOOKS,
    "rope_scaling": {"rope_type": "default", "mrope_section": [2, 3, 3], "interleaved": True},
    "codec_eos_token_id": CODES + 1,
    "codec_think_id": CODES + 2,
    "codec_nothink_id": CODES + 3,
    "codec_think_bos_id": CODES + 4,
    "codec_think_eos_id": CODES + 5,
    "codec_pad_id": CODES + 6,
    "codec_bos_id": CODES + 7,
    "codec_language_id": {"english": CODES + 8, "sichuan_dialect": CODES + 9},
    "spk_id": {"vivian": CODES + 10, "eric": CODES + 11},
    "spk_is_dialect": {"vivian": False, "eric": "sichuan_dialect"},
    "code_predictor_config": {
        **_SMALL,
        "vocab_size": CODES,
        "hidden_size": 24,
        "intermediate_size": 48,
        "num_code_groups": BOOKS,
    },
}
_CODEC = {
    "codebook_size": CODES,
    "codebook_dim": 32,
    "latent_dim": 24,
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "sliding_window": 10,
    "num_quantizers": BOOKS,
    "decoder_dim": 32,
}
_ENCODER = {
    "hidden_size": 32,
    "num_filters": 4,
    "codebook_size": CODES,
    "codebook_dim": 16,
    "vector_quantization_hidden_dimension": 16,
    "num_quantizers": BOOKS,
    "upsample_groups": 32,
    "num_hidden_layers": 1,
    "intermediate_size": 32,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
}
VOICES = (("vivian", "auto", ""), ("eric", "auto", ""), ("vivian", "english", INSTRUCTIONS))


def write(folder: Path) -> None:
    assert PINNED.startswith("4."), "what qwen-tts asks for"
    tokenizer = byte_tokenizer(SPECIAL)
    number = tokenizer.token_to_id
    config = Qwen3TTSConfig(
        talker_config=_TALKER,
        speaker_encoder_config={},
        tokenizer_type="qwen3_tts_tokenizer_12hz",
        tts_model_size="1b7",
        tts_model_type="custom_voice",
        im_start_token_id=number("<|im_start|>"),
        im_end_token_id=number("<|im_end|>"),
        tts_pad_token_id=number("<tts_pad>"),
        tts_bos_token_id=number("<tts_text_bos>"),
        tts_eos_token_id=number("<tts_text_eod>"),
    )
    config.talker_config.text_vocab_size = tokenizer.get_vocab_size()
    model = drawn(Qwen3TTSForConditionalGeneration(config), 100)
    codec = drawn(
        Qwen3TTSTokenizerV2Model(
            Qwen3TTSTokenizerV2Config(encoder_config=_ENCODER, decoder_config=_CODEC)
        ),
        101,
    )
    with torch.no_grad():
        for name, weight in codec.decoder.named_parameters():
            if name.endswith((".alpha", ".beta")):  # logarithms
                weight.zero_()
            elif name.endswith("cluster_usage"):
                weight.fill_(1.0)
            elif name.endswith((".gamma", "layer_scale.scale")):
                weight.fill_(0.1)
            elif name.startswith("decoder.") and name.endswith("conv.weight"):
                weight.mul_(0.5)
    model.save_pretrained(folder)
    codec.save_pretrained(folder / "speech_tokenizer")
    save(tokenizer, folder)
    expected: dict[str, np.ndarray] = {}
    for index, (voice, language, told) in enumerate(VOICES):
        asked = f"<|im_start|>assistant\n{TEXT}<|im_end|>\n<|im_start|>assistant\n"
        instruct = f"<|im_start|>user\n{told}<|im_end|>\n"
        with torch.no_grad():
            codes, _ = model.generate(
                input_ids=[torch.tensor([tokenizer.encode(asked).ids])],
                instruct_ids=[torch.tensor([tokenizer.encode(instruct).ids]) if told else None],
                languages=[language],
                speakers=[voice],
                non_streaming_mode=True,
                max_new_tokens=FRAMES + 1,
                do_sample=False,
                subtalker_dosample=False,
            )
            sound = codec.decoder(codes[0][:FRAMES].T[None])[0, 0]
        expected[f"codes{index}"] = codes[0][:FRAMES].numpy()
        expected[f"sound{index}"] = sound.numpy()
    np.savez(folder / EXPECTED, **expected)


if __name__ == "__main__":
    torch.set_num_threads(1)
    write(Path(sys.argv[1]))
