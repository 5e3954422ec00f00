"""Video files of strangers: what their header says, their pictures one by one, and their sound.

Sizes are read from the header first, and counted again while decoding: a file whose header lies
gains nothing. This module must not know who sent a file.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import av
import numpy as np
from numpy.typing import NDArray

from duologue.codecs.pictures import Pixels
from duologue.core.errors import ClientError, LimitExceeded

UNDECODABLE_FILM = "undecodable_video"


@dataclass(frozen=True, slots=True)
class FilmInfo:
    """What the header says; a film without a length says 0 pictures."""

    width: int
    height: int
    rate: Fraction
    pictures: int
    audio_rate_hz: int | None


@dataclass(frozen=True, slots=True)
class FilmLimits:
    """What is allowed."""

    max_pixels: int
    max_total_pixels: int
    max_pictures: int


class FilmReader:
    """One file.

    Raises:
        ClientError: It is no video.
        LimitExceeded: Its header says that it is too large.
    """

    def __init__(self, data: bytes, limits: FilmLimits) -> None:
        self._data = data
        self._limits = limits
        self.info = self._probed()
        self._check(max(1, self.info.pictures))

    def pictures(self) -> Iterator[Pixels]:
        """Yield the pictures, in order: [height, width, 3].

        Raises:
            ClientError: The file cannot be decoded.
            LimitExceeded: There are more than the header said, and than are allowed.
        """
        try:
            with av.open(io.BytesIO(self._data), "r") as file:
                for number, frame in enumerate(file.decode(video=0), 1):
                    self._check(number)
                    pixels = frame.to_ndarray(format="rgb24")
                    yield pixels.astype(np.uint8, copy=False)
        except (av.FFmpegError, IndexError) as exc:
            raise _undecodable() from exc

    def sound(self) -> tuple[NDArray[np.float32], int] | None:
        """Return all the sound, [channels, samples] with one or two channels, and its rate.

        Raises:
            ClientError: It cannot be decoded.
        """
        rate_hz = self.info.audio_rate_hz
        if rate_hz is None:
            return None
        layout = "stereo"
        pieces: list[NDArray[np.float32]] = []
        try:
            with av.open(io.BytesIO(self._data), "r") as file:
                if file.streams.audio[0].codec_context.channels == 1:
                    layout = "mono"
                resampler = av.AudioResampler("fltp", layout, rate_hz)
                for frame in file.decode(audio=0):
                    pieces += [_samples(each) for each in resampler.resample(frame)]
                pieces += [_samples(each) for each in resampler.resample(None)]
        except (av.FFmpegError, IndexError) as exc:
            raise _undecodable() from exc
        return (np.concatenate(pieces, axis=1), rate_hz) if pieces else None

    def _probed(self) -> FilmInfo:
        try:
            with av.open(io.BytesIO(self._data), "r") as file:
                video = file.streams.video[0]
                sounds = file.streams.audio
                return FilmInfo(
                    video.width,
                    video.height,
                    Fraction(video.average_rate or video.guessed_rate or 0),
                    video.frames,
                    sounds[0].rate if sounds else None,
                )
        except (av.FFmpegError, IndexError) as exc:
            raise _undecodable() from exc

    def _check(self, pictures: int) -> None:
        limits, info = self._limits, self.info
        pixels = info.width * info.height
        if not pixels:
            raise _undecodable()
        if pixels > limits.max_pixels:
            raise LimitExceeded(
                f"a picture of the video has {info.width}x{info.height} = {pixels} pixels, "
                f"the limit is {limits.max_pixels}"
            )
        if pictures > limits.max_pictures or pictures * pixels > limits.max_total_pixels:
            raise LimitExceeded(
                f"the video has {pictures} pictures or more of {pixels} pixels; the limits are "
                f"{limits.max_pictures} pictures and {limits.max_total_pixels} pixels in all"
            )


def first_picture(data: bytes, limits: FilmLimits) -> Pixels:
    """Return the first picture of a file.

    Raises:
        ClientError: There is none.
        LimitExceeded: It is too large.
    """
    for picture in FilmReader(data, limits).pictures():
        return picture
    raise _undecodable()


def _samples(frame: av.AudioFrame) -> NDArray[np.float32]:
    return frame.to_ndarray().astype(np.float32, copy=False)


def _undecodable() -> ClientError:
    return ClientError("the video cannot be decoded", code=UNDECODABLE_FILM)
