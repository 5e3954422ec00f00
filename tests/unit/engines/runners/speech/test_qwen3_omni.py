from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer
from transformers import Qwen3OmniMoeForConditionalGeneration

from duologue.core.errors import ConfigError, EngineError
from duologue.engines.models.code_talker.talker import CodeTalker
from duologue.engines.payloads import SpeakText
from duologue.engines.runners.speech.qwen3_omni import (
    Qwen3OmniSettings,
    load_codec,
    load_talker,
)
from tests.fakes.tiny_speech.judge import in_chunks, spoken
from tests.fakes.tiny_speech.qwen3_omni import CODES, END

pytestmark = pytest.mark.speech

Tiny = Callable[[str], Path]
ASKED, TEXT, FRAMES = "Read this aloud.", "Hello there, you.", 30
SUPPRESSED = [each for each in range(CODES, CODES + 1024) if each != END]


def settings(folder: Path, **more: object) -> Qwen3OmniSettings:
    return Qwen3OmniSettings(
        folder=str(folder),
        temperature=0,
        other_temperature=0,
        slots=3,
        **{"max_frames": FRAMES, "asked": ASKED, **more},
    )


@cache
def theirs(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Codes of the library's talker, given the thinker's words, and their sound at once.

    The thinker's part is done by hand, so that it says these words and no others.
    """
    model = Qwen3OmniMoeForConditionalGeneration.from_pretrained(folder).eval()
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    asked = f"<|im_start|>user\n{ASKED}<|im_end|>\n"
    ids = torch.tensor([tokenizer.encode(f"{asked}<|im_start|>assistant\n{TEXT}").ids])
    start = len(tokenizer.encode(asked).ids)
    config = model.config
    special = [config.tts_bos_token_id, config.tts_eos_token_id, config.tts_pad_token_id]
    with torch.no_grad():
        embed = model.thinker.get_input_embeddings()
        begin, end, pad = model.talker.text_projection(embed(torch.tensor([special]))).chunk(3, 1)
        words = embed(ids)
        none = torch.zeros_like(ids, dtype=torch.bool)
        user = model._get_talker_user_parts(0, start, none, words, words)
        voice = config.talker_config.speaker_id["ethan"]
        answer, answer_ids, later = model._get_talker_assistant_parts(
            start, ids.shape[1], voice, words, pad, begin, end
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
                max_new_tokens=FRAMES + 1,
                eos_token_id=END,
                repetition_penalty=1.05,
                suppress_tokens=SUPPRESSED,
                output_hidden_states=True,
                return_dict_in_generate=True,
            )
        drawn = [each[-1] for each in result.hidden_states if each[-1] is not None]
        codes = torch.stack(drawn, dim=1)
        sound = model.code2wav(codes.transpose(1, 2))[0, 0]
    return codes[0].numpy(), sound.numpy()


def drawn(talker: CodeTalker, clause: SpeakText, count: int) -> list[list[int]]:
    utterance = talker.begin(clause)
    frames: list[list[int]] = []
    while len(frames) < count and (frame := talker.next_frames([utterance])[0]) is not None:
        frames += frame.tolist()
    talker.end(utterance)
    return frames


def test_it_draws_the_codes_that_the_library_draws(tiny_speech: Tiny) -> None:
    talker = load_talker(settings(tiny_speech("qwen3_omni")))
    codes, _ = theirs(tiny_speech("qwen3_omni"))
    assert len(codes) == FRAMES > len(TEXT)
    assert drawn(talker, SpeakText(TEXT, 1), FRAMES) == codes.tolist()
    assert len({tuple(each) for each in codes.tolist()}) > 4


@pytest.mark.parametrize("chunk", [(1, 1), (1, 5), (3, 4)], ids=str)
def test_speech_is_the_librarys_at_every_border(tiny_speech: Tiny, chunk: tuple[int, int]) -> None:
    first, usual = chunk
    of = settings(tiny_speech("qwen3_omni"), first_frames=first, chunk_frames=usual)
    codes, expected = theirs(tiny_speech("qwen3_omni"))
    made = in_chunks(load_codec(of), codes.astype(np.uint16), first, usual)
    assert len(made) == 1920 * FRAMES - 555
    np.testing.assert_allclose(made, expected, atol=2e-5)


@pytest.mark.parametrize("first_audio", [False, True], ids=["codec", "ahead"])
def test_the_stages_say_what_the_library_says(tiny_speech: Tiny, first_audio: bool) -> None:
    folder = tiny_speech("qwen3_omni")
    _, expected = theirs(folder)
    fused = spoken(load_talker, load_codec, settings(folder), TEXT)
    np.testing.assert_allclose(fused, expected, atol=2 / 32_000)
    two = spoken(load_talker, load_codec, settings(folder, first_audio=first_audio), TEXT, stages=2)
    np.testing.assert_allclose(two, fused, atol=2 / 32_000)


def test_an_end_code_ends_the_utterance(tiny_speech: Tiny, tmp_path: Path) -> None:
    folder = tmp_path / "ends"
    shutil.copytree(tiny_speech("qwen3_omni"), folder)
    codes, _ = theirs(tiny_speech("qwen3_omni"))
    first = codes[:, 0].tolist()
    at = next(place for place in range(4, FRAMES) if first[place] not in first[:place])
    config = json.loads((folder / "config.json").read_text())
    config["talker_config"]["codec_eos_token_id"] = first[at]
    (folder / "config.json").write_text(json.dumps(config))
    frames = drawn(load_talker(settings(folder)), SpeakText(TEXT, 1), FRAMES)
    assert frames == codes[:at].tolist()


def test_a_voice_is_one_of_the_checkpoints(tiny_speech: Tiny) -> None:
    talker = load_talker(settings(tiny_speech("qwen3_omni")))
    ethan = drawn(talker, SpeakText(TEXT, 1, "Ethan"), 4)
    assert ethan == drawn(talker, SpeakText(TEXT, 1), 4)
    assert ethan != drawn(talker, SpeakText(TEXT, 1, "chelsie"), 4)
    with pytest.raises(EngineError, match="chelsie, ethan"):
        talker.begin(SpeakText(TEXT, 1, "alloy"))


def test_instructions_are_what_was_asked(tiny_speech: Tiny) -> None:
    talker = load_talker(settings(tiny_speech("qwen3_omni")))
    told = drawn(talker, SpeakText(TEXT, 1, instructions="Whisper."), 4)
    asked = load_talker(settings(tiny_speech("qwen3_omni"), asked="Whisper."))
    assert told == drawn(asked, SpeakText(TEXT, 1), 4)


def test_draws_follow_the_seed(tiny_speech: Tiny) -> None:
    def said(seed: int) -> list[list[int]]:
        of = Qwen3OmniSettings(folder=str(tiny_speech("qwen3_omni")), slots=1, seed=seed)
        return drawn(load_talker(of), SpeakText(TEXT, 1), 6)

    assert said(1) == said(1) != said(2)


def test_a_folder_of_another_model_is_refused(tiny_speech: Tiny) -> None:
    with pytest.raises(ConfigError, match="talker_config"):
        load_talker(settings(tiny_speech("csm")))
