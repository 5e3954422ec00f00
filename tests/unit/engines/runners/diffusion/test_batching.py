from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duologue.core.errors import EngineError
from duologue.engines.media_payloads import DrawImage, LoraChoice, MakeSound, MakeVideo
from duologue.engines.payloads import TextDelta
from duologue.engines.runners.diffusion.batching import (
    Ask,
    ask_of,
    batch_key,
    check_size,
    choose_batch,
    pixels_of,
    shape_of,
)

IMAGE = DrawImage("a cat", 64, 48, 4, 3.5, 7)
VIDEO = MakeVideo("waves", 64, 48, 9, 16, 4, 3.5, 7)
SOUND = MakeSound("rain", 2.0, 4, 3.5, 7)


def but(ask: Ask, **changes: object) -> Ask:
    return msgspec.structs.replace(ask, **changes)


def test_a_shape_is_what_tensors_depend_on() -> None:
    assert shape_of(IMAGE) == shape_of(but(IMAGE, steps=9, prompt="a dog"))
    shapes = {shape_of(each) for each in (IMAGE, but(IMAGE, width=128), VIDEO, SOUND)}
    assert len(shapes | {shape_of(but(VIDEO, pictures=5))}) == 5


KINDS = [IMAGE, but(IMAGE, steps=9), but(IMAGE, width=128), SOUND]


@pytest.mark.parametrize(
    "other",
    [
        but(IMAGE, width=128),
        but(IMAGE, steps=5),
        but(IMAGE, guidance=1.0),
        but(IMAGE, negative="a dog"),
        but(IMAGE, partials=2),
        but(IMAGE, lora=LoraChoice("ink")),
        VIDEO,
    ],
)
def test_what_has_another_shape_or_schedule_is_made_apart(other: Ask) -> None:
    assert batch_key(other) != batch_key(IMAGE)


@pytest.mark.parametrize(
    "other",
    [but(IMAGE, prompt="a dog"), but(IMAGE, seed=8), but(IMAGE, media="webp", quality=5)],
)
def test_words_seeds_and_formats_may_differ(other: Ask) -> None:
    assert batch_key(other) == batch_key(IMAGE)


@pytest.mark.parametrize("ask", [but(IMAGE, image=b"x"), but(VIDEO, source=b"x"), SOUND])
def test_what_begins_with_a_file_and_sounds_are_made_alone(ask: Ask) -> None:
    assert batch_key(ask) is None
    assert choose_batch([ask, ask], lambda each: each, 4, 1 << 30) == [ask]


def test_pixels_are_known_before_there_are_any() -> None:
    assert pixels_of(IMAGE) == 64 * 48
    assert pixels_of(VIDEO) == 64 * 48 * 9
    assert pixels_of(SOUND) == 0
    check_size(VIDEO, 64 * 48 * 9)
    with pytest.raises(EngineError, match=r"27648 pixels.*27647") as refused:
        check_size(VIDEO, 64 * 48 * 9 - 1)
    assert refused.value.code == "limit_exceeded"


def test_what_is_no_request_is_refused() -> None:
    assert ask_of(IMAGE) is IMAGE
    with pytest.raises(EngineError, match="TextDelta"):
        ask_of(TextDelta("hello"))


@given(
    st.lists(
        st.sampled_from([IMAGE, but(IMAGE, steps=9), but(IMAGE, width=128), SOUND]), min_size=1
    ),
    st.integers(1, 5),
    st.integers(1, 40_000),
)
def test_a_batch_is_of_one_kind_and_within_its_bounds(
    waiting: list[Ask], most: int, pixels: int
) -> None:
    chosen = choose_batch(waiting, lambda each: each, most, pixels)
    assert chosen[0] is waiting[0], "the oldest is never passed over"
    assert 1 <= len(chosen) <= most
    assert len({batch_key(each) for each in chosen}) == 1
    assert len(chosen) == 1 or sum(map(pixels_of, chosen)) <= pixels
