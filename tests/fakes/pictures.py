"""Small pictures, each of one colour, so that one can be told from another after it was decoded."""

from __future__ import annotations

import numpy as np

from duologue.codecs.picture_urls import picture_in, url_of
from duologue.codecs.pictures import PictureMedia, decode, encode


def picture(shade: int, media: PictureMedia = "jpeg", width: int = 16, height: int = 16) -> bytes:
    """A grey picture.

    Args:
        shade: 0 to 255.
    """
    return encode(np.full((height, width, 3), shade, np.uint8), media)


def picture_url(shade: int, media: PictureMedia = "jpeg") -> str:
    """The same as a ``data:`` URL."""
    return url_of(picture(shade, media))


def shade_of(url: str) -> int:
    """Return how grey the picture in a URL is; JPEG may be off by one."""
    return int(decode(picture_in(url, "picture"), 1 << 20)[8, 8, 0])
