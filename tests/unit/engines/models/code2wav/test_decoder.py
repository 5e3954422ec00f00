from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
import torch
from torch import Tensor
from transformers import Qwen3OmniMoeForConditionalGeneration

from duologue.core.errors import ConfigError
from duologue.engines.models.checkpoint_folder import CheckpointFolder
from duologue.engines.models.code2wav.decoder import Code2Wav
from duologue.engines.models.code2wav.fronts import EmbeddedCodes
from tests.fakes.tiny_speech.qwen3_omni import BOOKS, CODES, WINDOW

pytestmark = pytest.mark.speech

FRAMES, LONGEST = 40, 7
CODES_GIVEN = torch.randint(CODES, (2, FRAMES, BOOKS), generator=torch.Generator().manual_seed(1))

Tiny = Callable[[str], Path]


def loaded(tiny_speech: Tiny, slots: int = 3) -> Code2Wav:
    with CheckpointFolder(tiny_speech("qwen3_omni")) as folder:
        section = folder.section("code2wav_config")
        front = EmbeddedCodes(folder, "code2wav", section, slots=slots, longest=LONGEST)
        return Code2Wav(folder, "code2wav", section, front, slots=slots)


@cache
def theirs(folder: Path) -> Tensor:
    """What the library makes of all frames at once."""
    model = Qwen3OmniMoeForConditionalGeneration.from_pretrained(folder).eval()
    with torch.no_grad():
        return model.code2wav(CODES_GIVEN.transpose(1, 2))[:, 0]


@pytest.mark.parametrize("size", [1, 3, LONGEST])
def test_steps_of_any_length_are_the_librarys_whole(tiny_speech: Tiny, size: int) -> None:
    assert FRAMES > 2 * WINDOW
    decoder = loaded(tiny_speech)
    decoder.reset(1)
    with torch.inference_mode():
        parts = [
            decoder.step(CODES_GIVEN[:1, at : at + size], [1], [at])
            for at in range(0, FRAMES, size)
        ]
    made, expected = torch.cat(parts, dim=1)[0], theirs(tiny_speech("qwen3_omni"))[0]
    assert made.shape == expected.shape == (decoder.length(FRAMES),)
    torch.testing.assert_close(made, expected, atol=2e-5, rtol=0)
    assert 0.01 < expected.abs().max() < 1  # neither silent nor clipped


def test_rows_of_other_ages_and_slots_do_not_mix(tiny_speech: Tiny) -> None:
    decoder = loaded(tiny_speech)
    expected = theirs(tiny_speech("qwen3_omni"))
    for slot in (0, 2):
        decoder.reset(slot)
    with torch.inference_mode():
        decoder.step(CODES_GIVEN[:1, :5], [0], [0])
        decoder.step(CODES_GIVEN[1:, :2], [2], [0])
        both = decoder.step(torch.stack((CODES_GIVEN[0, 5:8], CODES_GIVEN[1, 2:5])), [0, 2], [5, 2])
    for row, start in ((0, 5), (1, 2)):
        place = slice(decoder.length(start), decoder.length(start + 3))
        torch.testing.assert_close(both[row], expected[row, place], atol=2e-5, rtol=0)


def test_a_slot_that_is_used_again_is_as_new(tiny_speech: Tiny) -> None:
    decoder = loaded(tiny_speech)
    with torch.inference_mode():
        decoder.reset(0)
        first = decoder.step(CODES_GIVEN[:1, :4], [0], [0])
        decoder.reset(0)
        torch.testing.assert_close(decoder.step(CODES_GIVEN[:1, :4], [0], [0]), first)


def test_it_says_how_long_a_stream_is(tiny_speech: Tiny) -> None:
    decoder = loaded(tiny_speech)
    assert [decoder.length(frames) for frames in (0, 1, 2)] == [0, 1365, 3285]


def test_what_the_configuration_does_not_say_is_named(tiny_speech: Tiny) -> None:
    with CheckpointFolder(tiny_speech("qwen3_omni")) as folder:
        section = dict(folder.section("code2wav_config"))
        front = EmbeddedCodes(folder, "code2wav", section, slots=1, longest=1)
        del section["upsample_rates"]
        with pytest.raises(ConfigError, match="upsample_rates"):
            Code2Wav(folder, "code2wav", section, front, slots=1)
