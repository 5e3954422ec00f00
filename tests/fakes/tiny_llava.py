"""A language model that sees, of 0.3 million random weights, in the files of a real one."""

from __future__ import annotations

from pathlib import Path

import torch
from transformers import (
    CLIPImageProcessor,
    CLIPVisionConfig,
    LlamaConfig,
    LlavaConfig,
    LlavaForConditionalGeneration,
    LlavaProcessor,
    PreTrainedTokenizerFast,
)

from tests.fakes.tiny_llama import ASSISTANT, END, LAYERS, USER, WIDTH
from tests.fakes.tiny_speech.tokenizers import byte_tokenizer

IMAGE = "<image>"
NAMED = (END, USER, ASSISTANT, IMAGE)
TEMPLATE = (
    "{% for message in messages %}<user>{% if message.content is string %}{{ message.content }}"
    "{% else %}{% for part in message.content %}"
    "{% if part.type == 'image' %}<image>{% else %}{{ part.text }}{% endif %}"
    "{% endfor %}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)
SIDE, PATCH = 32, 16
"""Pixels of what it sees of a picture, and of each part of that, which is one token."""


def tiny_llava(folder: Path) -> Path:
    """Write the model and return its folder."""
    torch.manual_seed(7)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=byte_tokenizer(NAMED), eos_token=END, pad_token=END
    )
    tokenizer.chat_template = TEMPLATE
    tokenizer.save_pretrained(folder)
    LlavaProcessor(
        CLIPImageProcessor(size={"shortest_edge": SIDE}, crop_size={"height": SIDE, "width": SIDE}),
        tokenizer,
        patch_size=PATCH,
        vision_feature_select_strategy="default",
        chat_template=TEMPLATE,
        image_token=IMAGE,
        num_additional_image_tokens=1,
    ).save_pretrained(folder)
    config = LlavaConfig(
        vision_config=CLIPVisionConfig(
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=3,
            num_attention_heads=2,
            image_size=SIDE,
            patch_size=PATCH,
        ),
        text_config=LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=WIDTH,
            intermediate_size=2 * WIDTH,
            num_hidden_layers=LAYERS,
            num_attention_heads=2,
            num_key_value_heads=1,
            max_position_embeddings=2048,
            bos_token_id=None,
            eos_token_id=tokenizer.eos_token_id,
        ),
        image_token_index=tokenizer.convert_tokens_to_ids(IMAGE),
        image_seq_length=(SIDE // PATCH) ** 2,
        eos_token_id=tokenizer.eos_token_id,
    )
    model = LlavaForConditionalGeneration(config)
    with torch.no_grad():
        # It never ends an answer by itself: a row of zeros has no chance against the best of many.
        model.lm_head.weight[: len(NAMED)] = 0
        # What it sees is as loud as what it reads.
        model.model.multi_modal_projector.linear_2.weight *= 20
    model.save_pretrained(folder)
    return folder
