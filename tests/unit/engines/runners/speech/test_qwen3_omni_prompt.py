from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from duologue.engines.runners.speech.qwen3_omni_prompt import OmniPrompt
from duologue.engines.runners.speech.qwen3_omni_senses import Sensed
from tests.fakes.tiny_speech.omni_judge import library

pytestmark = [pytest.mark.speech, pytest.mark.timeout(120)]

Tiny = Callable[[str], Path]
SIZE = 4


def sound(count: int) -> Sensed:
    return Sensed(torch.full((count, SIZE), 7.0))


def picture(rows: int, columns: int, depth: int = 2) -> Sensed:
    features = torch.full((rows * columns, SIZE), 8.0)
    return Sensed(features, [features + layer for layer in range(1, depth + 1)], (rows, columns))


def test_everything_stands_where_the_library_has_it(tiny_speech: Tiny) -> None:
    model = library(tiny_speech("qwen3_omni")).thinker
    own = model.config
    prompt = OmniPrompt()
    prompt.words([1, own.audio_start_token_id])
    prompt.sensed(sound(13), own.audio_token_id)
    prompt.words([1, own.vision_start_token_id])
    prompt.sensed(picture(2, 5), own.image_token_id)
    prompt.words([own.vision_end_token_id, own.vision_start_token_id])
    prompt.sensed(picture(3, 1), own.image_token_id)
    prompt.words([own.vision_end_token_id, 1, 1])
    ids = torch.tensor([prompt.ids])
    places, shift = model.model.get_rope_index(
        ids,
        image_grid_thw=torch.tensor([[1, 4, 10], [1, 6, 2]]),
        attention_mask=torch.ones_like(ids),
        audio_seqlens=torch.tensor([100]),
    )
    stands = prompt.stands(ids.device)
    assert stands is not None
    assert torch.equal(stands, places[:, 0].long())
    assert prompt.shift == int(shift)


def test_words_and_sounds_stand_in_their_order() -> None:
    prompt = OmniPrompt()
    prompt.words([1, 2])
    prompt.sensed(sound(3), 5)
    prompt.words([3])
    assert prompt.ids == [1, 2, 5, 5, 5, 3]
    assert prompt.stands(torch.device("cpu")) is None
    assert prompt.shift == 0


def test_what_was_sensed_stands_in_place_of_its_signs_and_is_added_to_the_first_layers() -> None:
    table = torch.arange(10.0)[:, None].expand(10, SIZE)
    prompt = OmniPrompt()
    prompt.words([1, 2])
    prompt.sensed(picture(1, 2), 5)
    prompt.words([3])
    inputs = prompt.inputs(table[prompt.ids])
    assert inputs[:, 0].tolist() == [1, 2, 8, 8, 3]
    assert [each[:, 0].tolist() for each in prompt.added(inputs)] == [
        [0, 0, 9, 9, 0],
        [0, 0, 10, 10, 0],
    ]
