"""What the library makes of a conversation: Qwen3-Omni's thinker, talker and codec in turn."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer
from transformers import Qwen3OmniMoeForConditionalGeneration, WhisperFeatureExtractor
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

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


@cache
def voiced(
    folder: Path, asked: str, text: str, frames: int, voice: str = "ethan"
) -> tuple[np.ndarray, np.ndarray]:
    """Codes of the library's talker, given the thinker's words, and their sound at once.

    The thinker's part is done by hand, so that it says these words and no others.
    """
    model, encode = library(folder), tokenizer(folder).encode
    asked = f"<|im_start|>user\n{asked}<|im_end|>\n"
    ids = torch.tensor([encode(f"{asked}<|im_start|>assistant\n{text}").ids])
    start = len(encode(asked).ids)
    config = model.config
    special = [config.tts_bos_token_id, config.tts_eos_token_id, config.tts_pad_token_id]
    with torch.no_grad():
        embed = model.thinker.get_input_embeddings()
        begin, end, pad = model.talker.text_projection(embed(torch.tensor([special]))).chunk(3, 1)
        words = embed(ids)
        none = torch.zeros_like(ids, dtype=torch.bool)
        user = model._get_talker_user_parts(0, start, none, words, words)
        speaker = config.talker_config.speaker_id[voice]
        answer, answer_ids, later = model._get_talker_assistant_parts(
            start, ids.shape[1], speaker, words, pad, begin, end
        )
        inputs = torch.cat((user, answer), dim=1)
        with pytest.warns(UserWarning, match="repetition_penalty"):
            result = model.talker.generate(
                inputs_embeds=inputs,
                trailing_text_hidden=later,
                tts_pad_embed=pad,
                talker_input_ids=torch.cat((ids[:, :start], answer_ids), dim=1),
                attention_mask=torch.ones(inputs.shape[:2], dtype=torch.long),
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
        sound = model.code2wav(codes.transpose(1, 2))[0, 0]
    return codes[0].numpy(), sound.numpy()


def patches_of(folder: Path, pictures: Sequence[np.ndarray]) -> tuple[torch.Tensor, torch.Tensor]:
    """What the library's vision encoder is given, and the patches of each picture."""
    prepare = Qwen2VLImageProcessorPil.from_pretrained(folder)
    prepared = prepare(list(pictures), return_tensors="pt")
    return prepared["pixel_values"], prepared["image_grid_thw"]


def mel_of(folder: Path, recordings: Sequence[np.ndarray]) -> tuple[torch.Tensor, torch.Tensor]:
    """What the library's audio encoder is given, and how much of it each recording is.

    Each is prepared by itself: beside a longer one the library has it end in silence, which the
    last frame hears.
    """
    prepare = WhisperFeatureExtractor.from_pretrained(folder)
    mels = [
        prepare(samples, sampling_rate=16_000, padding=True, truncation=False, return_tensors="pt")
        for samples in recordings
    ]
    mels = [each["input_features"][0].T for each in mels]
    masks = [torch.ones(len(each), dtype=torch.long) for each in mels]
    pad = torch.nn.utils.rnn.pad_sequence
    return pad(mels, batch_first=True).transpose(1, 2), pad(masks, batch_first=True)


def answered(
    folder: Path,
    written: str,
    pictures: Sequence[np.ndarray],
    recordings: Sequence[np.ndarray],
    words: int,
) -> tuple[int, list[int]]:
    """How many tokens a prompt has, and so many that the library's thinker goes on with.

    Args:
        written: With one sign for each picture and each recording.
    """
    model = library(folder)
    ids, given = _given(folder, written, pictures, recordings)
    with torch.no_grad():
        result = model.thinker.generate(
            input_ids=torch.tensor([ids]),
            attention_mask=torch.ones(1, len(ids), dtype=torch.long),
            do_sample=False,
            max_new_tokens=words,
            eos_token_id=model.config.im_end_token_id,
            **given,
        )
    return len(ids), result[0, len(ids) :].tolist()


def answered_aloud(
    folder: Path,
    written: str,
    pictures: Sequence[np.ndarray],
    recordings: Sequence[np.ndarray],
    words: int,
    frames: int,
) -> tuple[list[int], np.ndarray]:
    """So many words of the library's answer to a prompt, and their sound: its own ``generate``."""
    model = library(folder)
    # Where there are both pictures and recordings its talker looks for these sizes, and has none.
    model.talker.config.audio_config = model.config.thinker_config.audio_config
    ids, given = _given(folder, written, pictures, recordings)
    with pytest.warns(UserWarning, match="repetition_penalty"):
        found, sound = model.generate(
            input_ids=torch.tensor([ids]),
            attention_mask=torch.ones(1, len(ids), dtype=torch.long),
            speaker="Ethan",
            return_audio=True,
            thinker_do_sample=False,
            thinker_eos_token_id=model.config.im_end_token_id,
            # The last word of an answer that is cut never reaches its talker.
            thinker_max_new_tokens=words + 1,
            talker_do_sample=False,
            talker_max_new_tokens=frames + 1,
            **given,
        )
    return found[0, len(ids) : len(ids) + words].tolist(), np.asarray(sound[0, 0])


def _given(
    folder: Path, written: str, pictures: Sequence[np.ndarray], recordings: Sequence[np.ndarray]
) -> tuple[list[int], dict[str, torch.Tensor]]:
    """Tokens of a prompt, with a sign for each feature, and what the encoders are given."""
    model = library(folder)
    given: dict[str, torch.Tensor] = {}
    counts: dict[str, list[int]] = {"image": [], "audio": []}
    if pictures:
        given["pixel_values"], given["image_grid_thw"] = patches_of(folder, pictures)
        counts["image"] = (given["image_grid_thw"].prod(dim=1) // 4).tolist()
    if recordings:
        given["input_features"], mask = mel_of(folder, recordings)
        given["feature_attention_mask"] = mask
        for row, part in enumerate(mask):
            heard = model.thinker.get_audio_features(
                given["input_features"][row : row + 1], part[None], return_dict=True
            )
            counts["audio"].append(len(heard.last_hidden_state))
    for kind, numbers in counts.items():
        sign = f"<|{kind}_pad|>"
        before, *rest = written.split(sign)
        written = before + "".join(
            sign * count + after for count, after in zip(numbers, rest, strict=True)
        )
    return tokenizer(folder).encode(written).ids, given
