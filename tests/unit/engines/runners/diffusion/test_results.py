from __future__ import annotations

import numpy as np
import pytest
import torch

from duologue.core.errors import EngineError
from duologue.engines.media_payloads import DrawImage, MakeVideo
from duologue.engines.runners.diffusion.results import Film, image, rate_of, sound, to_pixels

pytestmark = pytest.mark.diffusion


def test_pixels_are_rounded_as_the_library_rounds_them() -> None:
    values = np.array([[[0.0, 0.4999, 1.0], [1.2, -0.1, 127.5 / 255]]], np.float32)
    assert to_pixels(values).tolist() == [[[0, 127, 255], [255, 0, 128]]]


def test_an_image_says_its_size_and_which_view_of_it_it_is() -> None:
    ask = DrawImage("a cat", 64, 48, 4, 3.5, 7, media="jpeg", quality=50)
    made = image(ask, np.zeros((48, 64, 3), np.float32), partial=1)
    assert (made.width, made.height, made.media, made.partial) == (64, 48, "jpeg", 1)
    assert made.data.startswith(b"\xff\xd8")


def test_the_sound_of_a_film_comes_with_the_pictures_it_belongs_to() -> None:
    ask = MakeVideo("waves", 16, 16, 9, 8, 4, 3.5, 7)
    film = Film(ask, 16, 16, np.zeros((1, 9 * 2000), np.float32), 16_000)
    pieces = list(film.add(np.zeros((9, 16, 16, 3), np.float32)))
    assert [each.pictures for each in pieces] == [4, 4, 1]
    assert all(b"moof" in each.data for each in pieces)
    assert [each.pictures for each in film.end()] == [0]


def test_a_sound_is_interleaved() -> None:
    made = sound(torch.tensor([[0.0, 1.0], [-1.0, 2.0]]), 8_000)
    assert np.frombuffer(made.pcm, "<i2").tolist() == [0, -32_767, 32_767, 32_767]
    assert (made.rate_hz, made.channels) == (8_000, 2)


def test_a_pipeline_without_sound_has_no_rate() -> None:
    with pytest.raises(EngineError, match="rate"):
        rate_of(object())
