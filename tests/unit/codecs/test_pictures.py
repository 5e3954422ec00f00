from __future__ import annotations

import contextlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duologue.codecs.pictures import PictureMedia, Pixels, check_picture, decode, encode, probe
from duologue.core.errors import ClientError, LimitExceeded


def gradient(width: int = 48, height: int = 32) -> Pixels:
    rows, columns = np.mgrid[0:height, 0:width]
    parts = (columns * 255 // width, rows * 255 // height, (rows + columns) % 256)
    return np.stack(parts, axis=-1).astype(np.uint8)


def test_png_loses_nothing() -> None:
    pixels = gradient()
    assert np.array_equal(decode(encode(pixels, "png"), 10_000), pixels)


@pytest.mark.parametrize("media", ["png", "jpeg", "webp"])
def test_the_header_says_kind_and_size(media: PictureMedia) -> None:
    info = probe(encode(gradient(50, 34), media))
    assert (info.media, info.width, info.height) == (media, 50, 34)


@pytest.mark.parametrize("media", ["jpeg", "webp"])
def test_less_quality_takes_fewer_bytes_and_the_best_is_close(media: PictureMedia) -> None:
    pixels = gradient(96, 64)
    best, worst = encode(pixels, media, 100), encode(pixels, media, 10)
    assert len(worst) < len(best)
    error = np.abs(decode(best, 10_000).astype(int) - pixels)
    assert error.mean() < 4


def test_a_clients_picture_is_refused_in_the_name_of_its_field() -> None:
    small = encode(gradient(8, 8), "png")
    assert check_picture(small, 64, "mask").width == 8
    large = small[:16] + (50_000).to_bytes(4, "big") * 2 + small[24:]
    with pytest.raises(LimitExceeded, match="2500000000") as refused:
        check_picture(large, 1 << 28, "mask")
    assert refused.value.param == "mask"
    with pytest.raises(ClientError) as undecodable:
        check_picture(b"no picture", 64, "mask")
    assert (undecodable.value.code, undecodable.value.param) == ("undecodable_image", "mask")


def test_a_picture_of_many_pixels_is_refused_by_its_header_alone() -> None:
    header = encode(gradient(), "png")[:16] + (60_000).to_bytes(4, "big") * 2 + bytes(20)
    assert probe(header).width == 60_000
    with pytest.raises(LimitExceeded, match="60000x60000"):
        decode(header, 1_000_000)


@pytest.mark.parametrize("data", [b"", b"GIF89a", encode(gradient(), "png")[:40], b"\xff\xd8\xff"])
def test_what_is_no_picture_is_the_senders_fault(data: bytes) -> None:
    with pytest.raises(ClientError):
        decode(data, 10_000)


@given(st.sampled_from(["png", "jpeg", "webp"]), st.data())
def test_no_bytes_bring_down_the_reader(media: PictureMedia, data: st.DataObject) -> None:
    raw = bytearray(encode(gradient(16, 16), media))
    for _ in range(data.draw(st.integers(1, 8))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(ClientError):
        assert decode(bytes(raw), 4_096).shape[2] in (3, 4)
