"""Tokenizers without training: every byte or letter is a token, so all machines make the same."""

from __future__ import annotations

import string

from tokenizers import pre_tokenizers
from transformers import (
    CLIPTokenizer,
    PreTrainedTokenizerBase,
    Qwen2Tokenizer,
    RobertaTokenizer,
    T5Tokenizer,
)

WORD_END = "</w>"


def clip_tokenizer() -> PreTrainedTokenizerBase:
    letters = _bytes()
    tokens = [*letters, *(each + WORD_END for each in letters), "<|startoftext|>", "<|endoftext|>"]
    return CLIPTokenizer(vocab=_numbered(tokens), merges=[], model_max_length=77)


def t5_tokenizer() -> PreTrainedTokenizerBase:
    letters = "\u2581" + string.ascii_lowercase + string.digits + ".,?!"
    pieces = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), *((each, -3.5) for each in letters)]
    return T5Tokenizer(vocab=pieces, extra_ids=0, model_max_length=128)


def qwen_tokenizer() -> PreTrainedTokenizerBase:
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    return Qwen2Tokenizer(
        vocab=_numbered([*special, *_bytes()]),
        merges=[],
        additional_special_tokens=special[1:],
        model_max_length=1024,
    )


def llama_tokenizer() -> PreTrainedTokenizerBase:
    return Qwen2Tokenizer(
        vocab=_numbered(["<unk>", "<pad>", "<s>", "</s>", *_bytes()]),
        merges=[],
        unk_token="<unk>",
        pad_token="<pad>",
        bos_token="<s>",
        eos_token="</s>",
        model_max_length=1024,
    )


def roberta_tokenizer() -> PreTrainedTokenizerBase:
    tokens = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", *_bytes()]
    return RobertaTokenizer(vocab=_numbered(tokens), merges=[], model_max_length=77)


def _bytes() -> list[str]:
    return sorted(pre_tokenizers.ByteLevel.alphabet())


def _numbered(tokens: list[str]) -> dict[str, int]:
    return {token: number for number, token in enumerate(tokens)}
