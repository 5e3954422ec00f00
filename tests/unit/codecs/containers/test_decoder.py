from __future__ import annotations

import asyncio
from contextlib import aclosing

import numpy as np
import pytest

from duologue.codecs.containers import decode_child
from duologue.codecs.containers.decoder import PIECE_S, AudioFileDecoder, _refusal
from duologue.codecs.containers.formats import ACCEPTED_FORMATS, ReadLimits
from duologue.core.errors import ClientError, LimitExceeded
from tests.fakes.sound_files import browser_file, file_of, level, loudest_hz, tone


async def refusal(data: bytes, limits: ReadLimits | None = None) -> ClientError:
    with pytest.raises(ClientError) as refused:
        await AudioFileDecoder(limits).decode(data, 16_000)
    assert refused.value.param == "file"
    return refused.value


@pytest.mark.parametrize(
    "data",
    [
        file_of(tone(2.5), "WAV"),
        file_of(np.stack([tone(2.5)] * 2, axis=1), "WAV"),
        file_of(tone(2.5), "WAV", "PCM_24"),
        file_of(tone(2.5), "MP3"),
        browser_file(tone(2.5, rate_hz=48_000), "webm", "libopus", 48_000),
    ],
    ids=["wav", "stereo", "wav24", "mp3", "webm"],
)
async def test_files_become_pcm(data: bytes) -> None:
    samples = np.frombuffer(await AudioFileDecoder().decode(data, 16_000), "<i2")

    assert abs(len(samples) / 16_000 - 2.5) < 0.1
    assert abs(loudest_hz(samples, 16_000) - 440) < 2
    assert level(samples) == pytest.approx(8000, rel=0.05)


@pytest.mark.parametrize("data", [file_of(tone(2.5), "WAV"), file_of(tone(2.5), "FLAC")])
async def test_pieces_are_short_and_end_with_a_sample(data: bytes) -> None:
    async with AudioFileDecoder().open(data, 16_000) as pieces:
        lengths = [len(piece) async for piece in pieces]

    assert len(lengths) > 2
    assert all(length % 2 == 0 and length <= PIECE_S * 32_000 for length in lengths)


async def test_c74_eight_channels_are_mixed() -> None:
    channels = np.stack([tone(1.0)] * 8, axis=1)

    samples = np.frombuffer(
        await AudioFileDecoder().decode(file_of(channels, "WAV"), 16_000), "<i2"
    )

    assert level(samples) == pytest.approx(8000, rel=0.05)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"no audio at all",
        file_of(tone(1.0), "WAV")[:44],
        browser_file(tone(1.0, rate_hz=48_000), "webm", "libopus", 48_000)[:150],
    ],
    ids=["empty", "text", "header", "webm"],
)
async def test_c74_what_cannot_be_decoded_is_told_with_what_can(data: bytes) -> None:
    error = await refusal(data)

    assert error.code == "undecodable_audio"
    assert all(name in error.message for name in ACCEPTED_FORMATS)


@pytest.mark.parametrize("kind", ["WAV", "FLAC"])
async def test_c74_over_a_limit_is_told_with_the_limit(kind: str) -> None:
    data = file_of(tone(3.0), kind)

    long = await refusal(data, ReadLimits(max_s=2))
    assert isinstance(long, LimitExceeded)
    assert "3 s or more, the limit is 2 s" in long.message

    large = await refusal(data, ReadLimits(max_bytes=1000))
    assert isinstance(large, LimitExceeded)
    assert f"{len(data)} bytes, the limit is 1000" in large.message

    wide = await refusal(
        file_of(np.stack([tone(0.1)] * 3, axis=1), kind), ReadLimits(max_channels=2)
    )
    assert "3 channels, the limit is 2" in wide.message


async def test_a_file_that_takes_too_long_is_given_up() -> None:
    error = await refusal(file_of(tone(1.0), "FLAC"), ReadLimits(stall_s=0.001))

    assert "longer than" in error.message


async def test_reading_may_stop_at_any_time() -> None:
    decoder = AudioFileDecoder(processes=1)
    data = file_of(tone(30.0), "FLAC")

    async with decoder.open(data, 16_000):
        pass
    async with decoder.open(data, 16_000) as pieces, aclosing(pieces) as open_pieces:
        assert await anext(open_pieces)

    # The one place is free again.
    assert len(await decoder.decode(data, 16_000)) > 900_000


async def test_more_files_than_places_wait() -> None:
    decoder = AudioFileDecoder(processes=1)
    data = file_of(tone(1.0), "FLAC")

    both = await asyncio.gather(decoder.decode(data, 16_000), decoder.decode(data, 16_000))

    assert both[0] == both[1]


def test_a_crash_of_the_child_is_put_down_to_the_file() -> None:
    assert _refusal(-11, "", ReadLimits()).code == "undecodable_audio"
    assert _refusal(decode_child.REFUSED, "odd", ReadLimits()).code == "undecodable_audio"
