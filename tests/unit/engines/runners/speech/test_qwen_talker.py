from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from duologue.engines.models.checkpoint_folder import CheckpointFolder
from duologue.engines.runners.speech.qwen_talker import QwenSettings, QwenWords, missing
from tests.fakes.tiny_speech.qwen3_omni import BOOKS, CODES, END

pytestmark = pytest.mark.speech


def words_of(folder: Path, least_frames: int = 0, **settings: object) -> QwenWords:
    with CheckpointFolder(folder) as opened:
        talker = opened.section("talker_config")
        return QwenWords(
            opened,
            QwenSettings(folder=str(folder), **settings),
            talker,
            talker["text_config"],
            "thinker.model.embed_tokens.weight",
            least_frames,
        )


def scores(words: QwenWords, frames: int, said: int | None = None) -> torch.Tensor:
    hidden = torch.ones(1, words.first.shape[1])
    mask = torch.zeros((1, words.vocabulary), dtype=torch.bool)
    if said is not None:
        mask[0, said] = True
    return words.scores(hidden, mask, torch.tensor([frames]))[0]


def test_only_codes_and_their_end_can_be_drawn(tiny_speech: Callable[[str], Path]) -> None:
    words = words_of(tiny_speech("qwen3_omni"))
    possible = torch.isfinite(scores(words, 0)).nonzero().flatten().tolist()
    assert possible == [*range(CODES), END]
    assert words.is_end([END, 0, 0, 0])
    assert not words.is_end([0, END, END, END])


def test_the_end_is_not_drawn_too_early(tiny_speech: Callable[[str], Path]) -> None:
    words = words_of(tiny_speech("qwen3_omni"), least_frames=2)
    assert [torch.isfinite(scores(words, age)[END]).item() for age in (0, 1, 2)] == [
        False,
        False,
        True,
    ]


def test_what_was_said_is_less_likely(tiny_speech: Callable[[str], Path]) -> None:
    words = words_of(tiny_speech("qwen3_omni"), repetition_penalty=2.0)
    assert scores(words, 0, said=3)[3] < scores(words, 0)[3]


def test_a_frame_is_read_back_as_the_sum_of_its_codes(tiny_speech: Callable[[str], Path]) -> None:
    words = words_of(tiny_speech("qwen3_omni"))
    codes = torch.tensor([[1, 2, 3, 4]])
    assert codes.shape[1] == BOOKS
    tables = [words.first, *words.others]
    expected = sum(table[code] for table, code in zip(tables, codes[0], strict=True))
    torch.testing.assert_close(words.embed(codes)[0], expected)


def test_what_a_configuration_lacks_is_named() -> None:
    assert "codec_pad_id" in missing(KeyError("codec_pad_id")).message
