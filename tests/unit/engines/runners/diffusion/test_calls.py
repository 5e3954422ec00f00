from __future__ import annotations

import msgspec
import numpy as np
import pytest

from duologue.codecs.pictures import encode
from duologue.core.errors import EngineError
from duologue.engines.media_payloads import DrawImage, MakeSound, MakeVideo
from duologue.engines.runners.diffusion.calls import arguments, use_of
from duologue.engines.runners.diffusion.settings import DiffusionSettings

pytestmark = pytest.mark.diffusion

IMAGE = DrawImage("a cat", 64, 48, 4, 3.5, 7)
VIDEO = MakeVideo("waves", 64, 48, 9, 16, 4, 3.5, 7)
NAMES = {
    *("prompt", "negative_prompt", "generator", "num_inference_steps", "guidance_scale"),
    *("width", "height", "output_type", "num_frames", "image", "mask_image", "strength"),
}
SETTINGS = DiffusionSettings(folder="-", call={"max_sequence_length": 32})
PNG = encode(np.zeros((8, 8, 3), np.uint8), "png")


def test_one_alone_is_asked_for_as_in_the_librarys_documentation() -> None:
    call = arguments([IMAGE], NAMES, SETTINGS)
    assert call["prompt"] == "a cat"
    assert call["generator"].initial_seed() == 7
    assert (call["width"], call["height"], call["num_inference_steps"]) == (64, 48, 4)
    assert "negative_prompt" not in call
    assert "max_sequence_length" not in call, "the pipeline does not take it"


def test_several_have_a_generator_each() -> None:
    other = msgspec.structs.replace(IMAGE, prompt="a dog", seed=8, negative="rain")
    call = arguments([IMAGE, other], NAMES, SETTINGS)
    assert call["prompt"] == ["a cat", "a dog"]
    assert call["negative_prompt"] == [" ", "rain"]
    assert [each.initial_seed() for each in call["generator"]] == [7, 8]


def test_what_the_pipeline_does_not_take_is_refused() -> None:
    with pytest.raises(EngineError, match="negative_prompt") as refused:
        arguments(
            [msgspec.structs.replace(IMAGE, negative="rain")],
            NAMES - {"negative_prompt"},
            SETTINGS,
        )
    assert refused.value.code == "unsupported"


def test_a_mask_is_white_where_something_may_change() -> None:
    hole = np.full((8, 8, 3), 255, np.uint8)
    ask = msgspec.structs.replace(IMAGE, image=PNG, mask=encode(hole, "png"))
    call = arguments([ask], NAMES, SETTINGS)
    assert call["mask_image"].getpixel((0, 0)) == 255
    assert call["image"].size == (8, 8)


@pytest.mark.parametrize(
    ("ask", "use"),
    [
        (IMAGE, "text"),
        (msgspec.structs.replace(IMAGE, image=PNG), "image"),
        (msgspec.structs.replace(IMAGE, image=PNG, mask=PNG), "mask"),
        (VIDEO, "text"),
        (msgspec.structs.replace(VIDEO, image=PNG), "first_picture"),
        (msgspec.structs.replace(VIDEO, source=b"film"), "video"),
        (MakeSound("rain", 1.0, 4, 3.5, 7), "text"),
    ],
)
def test_what_a_request_begins_with_decides_who_makes_it(
    ask: DrawImage | MakeVideo | MakeSound, use: str
) -> None:
    assert use_of(ask) == use
