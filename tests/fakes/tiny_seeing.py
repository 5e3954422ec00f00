"""A language model that sees, of 0.2 million random weights, in the files of a real one.

Of the family Idefics3, since vLLM runs it without torchvision, which has no build for CPUs alone.
"""

from __future__ import annotations

from pathlib import Path

import torch
from transformers import (
    Idefics3Config,
    Idefics3ForConditionalGeneration,
    Idefics3ImageProcessor,
    Idefics3Processor,
    PreTrainedTokenizerFast,
)

from tests.fakes.tiny_llama import ASSISTANT, END, LAYERS, USER, WIDTH
from tests.fakes.tiny_speech.tokenizers import byte_tokenizer

IMAGE, AROUND, WHOLE = "<image>", "<fake_token_around_image>", "<global-img>"
NAMED = (END, USER, ASSISTANT, IMAGE, AROUND, WHOLE, "<end_of_utterance>")
TEMPLATE = (
    "{% for message in messages %}<user>{% if message.content is string %}{{ message.content }}"
    "{% else %}{% for part in message.content %}"
    "{% if part.type == 'image' %}<image>{% else %}{{ part.text }}{% endif %}"
    "{% endfor %}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)
SIDE, PATCH, SHRUNK = 32, 8, 2
"""Pixels that it sees of a picture, and of a patch of it; a token is ``SHRUNK`` patches square."""

PICTURE_TOKENS = (SIDE // PATCH // SHRUNK) ** 2
FRAME_TOKENS = 3
"""Written around them."""


def tiny_seeing(folder: Path) -> Path:
    """Write the model and return its folder."""
    torch.manual_seed(7)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=byte_tokenizer(NAMED), eos_token=END, pad_token=END
    )
    tokenizer.chat_template = TEMPLATE
    tokenizer.save_pretrained(folder)
    Idefics3Processor(
        Idefics3ImageProcessor(
            size={"longest_edge": SIDE},
            max_image_size={"longest_edge": SIDE},
            do_image_splitting=False,
        ),
        tokenizer,
        image_seq_len=PICTURE_TOKENS,
        chat_template=TEMPLATE,
    ).save_pretrained(folder)
    config = Idefics3Config(
        vision_config={
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "image_size": SIDE,
            "patch_size": PATCH,
        },
        text_config={
            "model_type": "llama",
            "vocab_size": len(tokenizer),
            "hidden_size": WIDTH,
            "intermediate_size": 2 * WIDTH,
            "num_hidden_layers": LAYERS,
            "num_attention_heads": 2,
            "num_key_value_heads": 1,
            "max_position_embeddings": 2048,
            "bos_token_id": None,
            "eos_token_id": tokenizer.eos_token_id,
            "pad_token_id": tokenizer.pad_token_id,
        },
        image_token_id=tokenizer.convert_tokens_to_ids(IMAGE),
        pad_token_id=tokenizer.pad_token_id,
        scale_factor=SHRUNK,
    )
    model = Idefics3ForConditionalGeneration(config)
    with torch.no_grad():
        # It never ends an answer by itself: a row of zeros has no chance against the best of many.
        model.lm_head.weight[: len(NAMED)] = 0
        # What it sees is as loud as what it reads.
        model.model.connector.modality_projection.proj.weight *= 20
    model.save_pretrained(folder)
    return folder
