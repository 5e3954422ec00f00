"""Pictures as ``data:`` URLs, the one form in which clients of language models send them.

What is in one is told from its header: a picture of a size that is not allowed is refused before
anything of its size exists, and so is what is none. This module must not know who sent a picture.
"""

from __future__ import annotations

import binascii

import pybase64

from duologue.codecs.pictures import (
    CONTENT_TYPES,
    UNDECODABLE_PICTURE,
    PictureInfo,
    check_picture,
    media_of,
)
from duologue.core.errors import ClientError

_BEGIN = "data:image/"
_BASE64 = ";base64"


def picture_in(url: str, param: str) -> bytes:
    """Return the file that a URL holds.

    Args:
        param: The field that the URL came in.

    Raises:
        ClientError: It is no ``data:image/`` URL in base64.
    """
    head, _, text = url.partition(",")
    if not head.startswith(_BEGIN) or not head.endswith(_BASE64):
        raise ClientError(
            "a picture is sent as a URL that begins with data:image/ and is in base64",
            code=UNDECODABLE_PICTURE,
            param=param,
        )
    try:
        return pybase64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise ClientError(
            "the picture is not in base64", code=UNDECODABLE_PICTURE, param=param
        ) from None


def check_picture_url(url: str, max_pixels: int, param: str) -> PictureInfo:
    """Return what the header of the picture in a URL says.

    Raises:
        ClientError: As ``picture_in`` and ``check_picture``.
    """
    return check_picture(picture_in(url, param), max_pixels, param)


def url_of(data: bytes) -> str:
    """Return a picture as a URL; of the file only the first bytes are looked at."""
    media = CONTENT_TYPES[media_of(data)]
    return f"data:{media};base64,{pybase64.b64encode(data).decode()}"
