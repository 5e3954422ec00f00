from __future__ import annotations

import base64

import pytest

from duologue.codecs.picture_urls import check_picture_url, picture_in, url_of
from duologue.codecs.pictures import PictureMedia
from duologue.core.errors import ClientError, LimitExceeded
from tests.fakes.pictures import picture


@pytest.mark.parametrize("media", ["png", "jpeg", "webp"])
def test_a_picture_is_the_same_in_a_url(media: PictureMedia) -> None:
    data = picture(9, media, 50, 34)
    url = url_of(data)
    assert url.startswith(f"data:image/{media};base64,")
    assert picture_in(url, "p") == data
    info = check_picture_url(url, 50 * 34, "p")
    assert (info.media, info.width, info.height) == (media, 50, 34)


def test_a_picture_of_too_many_pixels_is_refused_by_its_header() -> None:
    head = picture(9, "png", 50, 34)[:33]
    with pytest.raises(LimitExceeded, match="1700 pixels, the limit is 1699") as refused:
        check_picture_url(f"data:image/png;base64,{base64.b64encode(head).decode()}", 1699, "p")
    assert refused.value.param == "p"


@pytest.mark.parametrize(
    "url",
    [
        "http://example.com/a.png",
        "data:image/png,AAAA",
        "data:text/plain;base64,AAAA",
        "data:image/png;base64,AAA",
        "data:image/png;base64,AA AA",
        "data:image/png;base64,",
        "data:image/png;base64,AAAA",
    ],
)
def test_what_is_no_picture_names_its_field(url: str) -> None:
    with pytest.raises(ClientError) as refused:
        check_picture_url(url, 100, "p")
    assert (refused.value.code, refused.value.param) == ("undecodable_image", "p")


def test_a_url_is_made_without_a_look_inside() -> None:
    assert url_of(bytes(9)).startswith("data:image/jpeg;base64,")
