"""What a pipeline returns, as payloads: encoded where it was made, so that only bytes travel.

This module must not know how results come about.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from duologue.codecs.fmp4.writer import Fmp4Writer
from duologue.codecs.pictures import Pixels, encode
from duologue.core.errors import EngineError
from duologue.engines.media_payloads import DrawImage, ImageData, MakeVideo, SoundData, VideoData

PICTURES_A_CHUNK = 4
"""Pictures of a video that are encoded between two looks at what else there is to do."""


def to_pixels(picture: NDArray[np.float32]) -> Pixels:
    """Return a picture of 0 to 1 as bytes, rounded as the library does it."""
    return np.clip(np.round(picture * 255), 0, 255).astype(np.uint8)


def image(ask: DrawImage, picture: NDArray[np.float32], partial: int = -1) -> ImageData:
    """Return an encoded image.

    Args:
        picture: [height, width, 3], 0 to 1.
        partial: Its number among views of the unfinished image.
    """
    height, width, _ = picture.shape
    data = encode(to_pixels(picture), ask.media, ask.quality)
    return ImageData(data, ask.media, width, height, partial)


class Film:
    """One video on its way out.

    Args:
        sound: [channels, samples] at ``rate_hz``, or ``None``.
    """

    def __init__(
        self,
        ask: MakeVideo,
        width: int,
        height: int,
        sound: NDArray[np.float32] | None = None,
        rate_hz: int = 0,
    ) -> None:
        self._rate = ask.picture_rate
        self._sound = sound
        self._rate_hz = rate_hz
        self._shown = 0
        self._writer = Fmp4Writer(
            width,
            height,
            ask.picture_rate,
            audio_rate_hz=None if sound is None else rate_hz,
            channels=1 if sound is None else len(sound),
        )

    def add(self, pictures: NDArray[np.float32]) -> Iterator[VideoData]:
        """Yield what pictures add: [pictures, height, width, 3], 0 to 1."""
        for start in range(0, len(pictures), PICTURES_A_CHUNK):
            some = [to_pixels(each) for each in pictures[start : start + PICTURES_A_CHUNK]]
            data = self._writer.add(some, self._sound_of(len(some)))
            yield VideoData(data, len(some), self._writer.mime)

    def end(self) -> Iterator[VideoData]:
        """Yield what is left."""
        if data := self._writer.end():
            yield VideoData(data, 0, self._writer.mime)

    def _sound_of(self, pictures: int) -> NDArray[np.float32] | None:
        """Return the sound that is heard while the next pictures are shown."""
        start, self._shown = self._shown, self._shown + pictures
        if self._sound is None:
            return None
        first = start * self._rate_hz // self._rate
        return self._sound[:, first : self._shown * self._rate_hz // self._rate]


def sound(samples: Any, rate_hz: int) -> SoundData:
    """Return a sound: [channels, samples] or [samples], -1 to 1."""
    if isinstance(samples, torch.Tensor):
        samples = samples.float().cpu().numpy()
    channels = samples[None] if samples.ndim == 1 else samples
    pcm = np.clip(np.round(channels * 32_767), -32_768, 32_767).astype("<i2")
    return SoundData(np.ascontiguousarray(pcm.T).tobytes(), rate_hz, len(channels))


def rate_of(pipe: Any) -> int:
    """Return the sample rate of a pipeline that makes sounds.

    Raises:
        EngineError: It makes none.
    """
    vae = getattr(pipe, "vae", None)
    if (vocoder := getattr(pipe, "vocoder", None)) is not None:
        return int(vocoder.config.sampling_rate)
    if vae is not None and "sampling_rate" in vae.config:
        return int(vae.config.sampling_rate)
    raise EngineError(f"{type(pipe).__name__} does not say at which rate it sounds")
