"""A language model of 0.2 million random weights, in the files of a real one; and a LoRA for it."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from tests.fakes.tiny_speech.tokenizers import byte_tokenizer

END, USER, ASSISTANT = "<end>", "<user>", "<assistant>"
TEMPLATE = (
    "{% for tool in tools or [] %}{{ tool.function.name }} {% endfor %}"
    "{% for message in messages %}<user>{{ message.role }}: {{ message.content }}{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)
WIDTH, LAYERS, RANK = 64, 2, 4


def tiny_llama(folder: Path) -> Path:
    """Write the model and return its folder."""
    torch.manual_seed(5)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=byte_tokenizer((END, USER, ASSISTANT)), eos_token=END, pad_token=END
    )
    tokenizer.chat_template = TEMPLATE
    tokenizer.save_pretrained(folder)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=WIDTH,
        intermediate_size=2 * WIDTH,
        num_hidden_layers=LAYERS,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=2048,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
    )
    model = LlamaForCausalLM(config)
    with torch.no_grad():
        # It never ends an answer by itself: a row of zeros has no chance against the best of many.
        model.lm_head.weight[: len((END, USER, ASSISTANT))] = 0
    model.save_pretrained(folder)
    return folder


def tiny_lora(folder: Path) -> Path:
    """Write random weights to lay over it, as PEFT saves them."""
    torch.manual_seed(6)
    folder.mkdir()
    (folder / "adapter_config.json").write_text(
        '{"peft_type":"LORA","task_type":"CAUSAL_LM","r":4,"lora_alpha":64,'
        '"target_modules":["q_proj","o_proj"],"bias":"none","base_model_name_or_path":""}'
    )
    weights = {}
    for layer in range(LAYERS):
        for name in ("q_proj", "o_proj"):
            place = f"base_model.model.model.layers.{layer}.self_attn.{name}"
            weights[f"{place}.lora_A.weight"] = torch.randn(RANK, WIDTH)
            weights[f"{place}.lora_B.weight"] = torch.randn(WIDTH, RANK)
    save_file(weights, folder / "adapter_model.safetensors")
    return folder
