"""Pictures as files: PNG, JPEG and WebP, with libav.

``probe`` reads the header alone, so that a picture of a size that is not allowed is refused before
anything of its size exists. This module must not know who sent a picture.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias

import av
import numpy as np
from numpy.typing import NDArray

from duologue.core.errors import ClientError, LimitExceeded

PictureMedia: TypeAlias = Literal["png", "jpeg", "webp"]
Pixels: TypeAlias = NDArray[np.uint8]
"""[height, width, 3]: red, green, blue; with 4 channels the last is opacity."""

UNDECODABLE_PICTURE = "undecodable_image"

CONTENT_TYPES: dict[PictureMedia, str] = {
    "png": "image/png",
    "jpeg": "image/jpeg",
    "webp": "image/webp",
}

_PNG = b"\x89PNG\r\n\x1a\n"
_LARGEST_QSCALE = 31
_OTHER_FRAMES = (0xC4, 0xC8, 0xCC)
"""Markers of JPEG between C0 and CF that begin no frame."""


@dataclass(frozen=True, slots=True)
class PictureInfo:
    """What the header of a file says."""

    media: PictureMedia
    width: int
    height: int


def probe(data: bytes) -> PictureInfo:
    """Read the header of a picture.

    Raises:
        ClientError: It is no PNG, JPEG or WebP.
    """
    size = _png_size(data) or _webp_size(data) or _jpeg_size(data)
    if size is None or not size[1] or not size[2]:
        raise ClientError(
            "the image is no PNG, JPEG or WebP file that can be read", code=UNDECODABLE_PICTURE
        )
    return PictureInfo(*size)


def media_of(data: bytes) -> PictureMedia:
    """Tell what a picture is by its first bytes; what begins in no known way counts as JPEG."""
    if data.startswith(_PNG):
        return "png"
    return "webp" if data[:4] == b"RIFF" and data[8:12] == b"WEBP" else "jpeg"


def check_picture(data: bytes, max_pixels: int, param: str) -> PictureInfo:
    """Return what the header of a client's picture says.

    Args:
        param: The field that it came in.

    Raises:
        ClientError: It is no PNG, JPEG or WebP.
        LimitExceeded: It has more pixels than are allowed.
    """
    try:
        info = probe(data)
    except ClientError as exc:
        raise ClientError(exc.message, code=exc.code, param=param) from None
    pixels = info.width * info.height
    if pixels > max_pixels:
        raise LimitExceeded(
            f"the image has {info.width}x{info.height} = {pixels} pixels, "
            f"the limit is {max_pixels}",
            param=param,
        )
    return info


def decode(data: bytes, max_pixels: int) -> Pixels:
    """Return the pixels of a picture, with opacity where it has some.

    Raises:
        ClientError: It cannot be decoded.
        LimitExceeded: It has more pixels than are allowed.
    """
    check_picture(data, max_pixels, "image")
    try:
        with av.open(io.BytesIO(data), "r") as file:
            frame = next(file.decode(video=0))
            form = "rgba" if "a" in frame.format.name.removeprefix("gray") else "rgb24"
            return frame.to_ndarray(format=form).astype(np.uint8, copy=False)
    except (av.FFmpegError, StopIteration, IndexError, ValueError) as exc:
        raise ClientError("the image cannot be decoded", code=UNDECODABLE_PICTURE) from exc


def encode(pixels: Pixels, media: PictureMedia, quality: int = 100) -> bytes:
    """Return a picture as a file.

    Args:
        pixels: [height, width, 3].
        quality: 0 to 100; PNG is without loss at any.
    """
    frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(pixels), format="rgb24")
    match media:
        case "png":
            return _encoded(frame, "png", "rgb24", {})
        case "jpeg":
            scale = str(round(1 + (100 - quality) * (_LARGEST_QSCALE - 1) / 100))
            return _encoded(frame, "mjpeg", "yuvj444p", {"qmin": scale, "qmax": scale})
        case "webp":
            return _encoded(frame, "libwebp", "yuv420p", {"quality": str(quality)})


def _encoded(frame: av.VideoFrame, codec: str, form: str, options: dict[str, str]) -> bytes:
    context = av.CodecContext.create(codec, "w")
    assert isinstance(context, av.VideoCodecContext)
    context.width, context.height, context.pix_fmt = frame.width, frame.height, form
    context.time_base = Fraction(1, 1)
    context.options = options
    picture = frame if form == "rgb24" else frame.reformat(format=form)
    return b"".join(bytes(packet) for packet in (*context.encode(picture), *context.encode(None)))


def _png_size(data: bytes) -> tuple[PictureMedia, int, int] | None:
    if not data.startswith(_PNG) or data[12:16] != b"IHDR" or len(data) < 24:
        return None
    return "png", int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")


def _webp_size(data: bytes) -> tuple[PictureMedia, int, int] | None:
    if data[:4] != b"RIFF" or data[8:12] != b"WEBP" or len(data) < 30:
        return None
    match data[12:16]:
        case b"VP8X":
            width = int.from_bytes(data[24:27], "little") + 1
            return "webp", width, int.from_bytes(data[27:30], "little") + 1
        case b"VP8L":
            bits = int.from_bytes(data[21:25], "little")
            return "webp", (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case b"VP8 ":
            width = int.from_bytes(data[26:28], "little") & 0x3FFF
            return "webp", width, int.from_bytes(data[28:30], "little") & 0x3FFF
    return None


def _jpeg_size(data: bytes) -> tuple[PictureMedia, int, int] | None:
    if not data.startswith(b"\xff\xd8"):
        return None
    at = 2
    while at + 9 <= len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        if 0xC0 <= marker <= 0xCF and marker not in _OTHER_FRAMES:
            height = int.from_bytes(data[at + 5 : at + 7], "big")
            return "jpeg", int.from_bytes(data[at + 7 : at + 9], "big"), height
        at += 2 + int.from_bytes(data[at + 2 : at + 4], "big")
    return None
