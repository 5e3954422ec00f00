from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from duologue.codecs.pictures import encode
from duologue.core.errors import ClientError
from duologue.engines.media_offer import MediaOffer
from duologue.gateway.media.video_checks import VideoFields, video_of

OFFER = MediaOffer(
    serves=("videos", "video_edits"),
    width=64,
    height=48,
    pictures=9,
    picture_rate=8,
    max_pictures=33,
    max_total_pixels=64 * 48 * 33,
)
PNG = encode(np.zeros((8, 8, 3), np.uint8), "png")


@pytest.mark.parametrize(
    ("fields", "pictures", "rate"),
    [
        ({}, 9, 8),
        ({"seconds": "2"}, 13, 8),
        ({"seconds": 2.2}, 17, 8),
        ({"num_frames": 12, "fps": 24}, 9, 24),
        ({"seconds": "1", "fps": 5}, 5, 5),
    ],
)
def test_a_video_has_as_many_pictures_as_the_model_can_make(
    fields: dict[str, Any], pictures: int, rate: int
) -> None:
    ask = video_of(VideoFields(prompt="waves", **fields), OFFER, b"", 5)
    assert (ask.pictures, ask.picture_rate, ask.seed) == (pictures, rate, 5)
    assert (ask.width, ask.height) == (64, 48)


def test_a_reference_is_told_by_its_content() -> None:
    fields = VideoFields(prompt="waves")
    assert video_of(fields, OFFER, PNG, 5).image == PNG
    assert video_of(fields, OFFER, b"film", 5).source == b"film"
    with pytest.raises(ClientError, match="works on no videos"):
        video_of(fields, MediaOffer(serves=("videos",)), b"film", 5)


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"seconds": "long"}, "seconds"),
        ({"seconds": 0}, "seconds"),
        ({"seconds": 100}, "seconds"),
        ({"num_frames": 0}, "num_frames"),
        ({"num_frames": 34}, "num_frames"),
        ({"fps": 0}, "fps"),
        ({"overlap": 9}, "overlap"),
        ({"size": "128x96", "num_frames": 33}, "seconds"),
        ({"strength": 2}, "strength"),
    ],
)
def test_what_is_out_of_bounds_names_its_field(fields: dict[str, Any], param: str) -> None:
    with pytest.raises(ClientError) as refused:
        video_of(VideoFields(prompt="waves", **fields), OFFER, b"", 5)
    assert refused.value.param == param


def test_a_length_beyond_all_measure_is_refused_with_the_limit() -> None:
    with pytest.raises(ClientError, match="above 0, and 86400 at most"):
        video_of(VideoFields(prompt="waves", seconds="1e5"), OFFER, b"", 5)
