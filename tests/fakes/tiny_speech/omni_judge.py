"""What the library makes of a conversation: Qwen3-Omni's thinker, talker and codec in turn."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer
from transformers import Qwen3OmniMoeForConditionalGeneration

from duologue.engines.payloads import ChatMessage
from tests.fakes.tiny_speech.qwen3_omni import CODES, END

_SUPPRESSED = [each for each in range(CODES, CODES + 1024) if each != END]


@cache
def library(folder: Path) -> Qwen3OmniMoeForConditionalGeneration:
    return Qwen3OmniMoeForConditionalGeneration.from_pretrained(folder).eval()


def tokenizer(folder: Path) -> Tokenizer:
    return Tokenizer.from_file(str(folder / "tokenizer.json"))


def written(messages: Sequence[ChatMessage]) -> str:
    said = [f"<|im_start|>{each.role}\n{each.content}<|im_end|>\n" for each in messages]
    return "".join(said) + "<|im_start|>assistant\n"


@cache
def thought(
    folder: Path, messages: tuple[ChatMessage, ...], words: int
) -> tuple[list[int], list[int]]:
    """Tokens of a conversation, and so many that the library's thinker goes on with."""
    model = library(folder)
    ids = tokenizer(folder).encode(written(messages)).ids
    with torch.no_grad():
        result = model.thinker.generate(
            input_ids=torch.tensor([ids]),
            attention_mask=torch.ones(1, len(ids), dtype=torch.long),
            do_sample=False,
            max_new_tokens=words,
            eos_token_id=model.config.im_end_token_id,
        )
    return ids, result[0, len(ids) :].tolist()


@cache
def sounded(folder: Path, messages: tuple[ChatMessage, ...], words: int, frames: int) -> np.ndarray:
    """What the library's talker and codec make of these tokens, in the library's own way.

    As its ``generate`` does it: the person's turns, then the last answer.
    """
    model, config = library(folder), library(folder).config
    asked, found = thought(folder, messages, words)
    ids = torch.tensor([[*asked, *found]])
    starts = [at for at, each in enumerate(ids[0].tolist()) if each == config.im_start_token_id]
    ends = [*starts[1:], ids.shape[1]]
    special = [config.tts_bos_token_id, config.tts_eos_token_id, config.tts_pad_token_id]
    none = torch.zeros_like(ids, dtype=torch.bool)
    voice = config.talker_config.speaker_id["ethan"]
    with torch.no_grad():
        embed = model.thinker.get_input_embeddings()
        begin, end, pad = model.talker.text_projection(embed(torch.tensor([special]))).chunk(3, 1)
        embedded = embed(ids)
        inputs, read = [], []
        for start, until in zip(starts[:-1], ends[:-1], strict=True):
            if ids[0, start + 1] == config.user_token_id:
                inputs.append(model._get_talker_user_parts(start, until, none, embedded, embedded))
                read.append(ids[:, start:until])
        answer, answer_ids, later = model._get_talker_assistant_parts(
            starts[-1], ids.shape[1], voice, embedded, pad, begin, end
        )
        whole = torch.cat((*inputs, answer), dim=1)
        with pytest.warns(UserWarning, match="repetition_penalty"):
            result = model.talker.generate(
                inputs_embeds=whole,
                trailing_text_hidden=later,
                tts_pad_embed=pad,
                talker_input_ids=torch.cat((*read, answer_ids), dim=1),
                attention_mask=torch.ones(whole.shape[:2], dtype=torch.long),
                do_sample=False,
                max_new_tokens=frames + 1,
                eos_token_id=END,
                repetition_penalty=1.05,
                suppress_tokens=_SUPPRESSED,
                output_hidden_states=True,
                return_dict_in_generate=True,
            )
        drawn = [each[-1] for each in result.hidden_states if each[-1] is not None]
        codes = torch.stack(drawn, dim=1)
        return np.asarray(model.code2wav(codes.transpose(1, 2))[0, 0])
