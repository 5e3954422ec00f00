"""What a pipeline that makes pictures, videos or sound offers to clients, and its limits.

A request is held against these before any work begins: sizes are known from the request's fields
and the headers of its files alone. This module must not know how anything is made.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

import msgspec

MediaTask: TypeAlias = Literal["images", "image_edits", "videos", "video_edits", "sounds"]

Side = Annotated[int, msgspec.Meta(ge=8, le=16_384)]
Count = Annotated[int, msgspec.Meta(ge=1, le=100_000)]


class MediaOffer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The tasks, the values that stand where a client says nothing, and the bounds.

    Args:
        serves: What clients may ask for.
        width, height: Of a picture, where a client does not say, or says ``auto``.
        multiple_of: Sides must be multiples of this, as the model's patches ask for.
        max_side: Longest side of a picture.
        max_pixels: Of one picture.
        max_total_pixels: Of all pictures of a request together: the pictures of a video, or all
            ``n`` images.
        steps, guidance: How the model is used best.
        max_steps: Denoising steps that a client may ask for.
        pictures: Of a video; ``picture_rate``: of them a second.
        pictures_modulo: A video has a multiple of this many pictures and one more, as models with
            a codec for time ask for; others are rounded down.
        max_pictures: Longest video.
        sound_s, max_sound_s: Length of a sound.
        max_total_sound_s: Of all sounds of a request together.
        max_prompt_chars: Longest prompt.
    """

    serves: Annotated[tuple[MediaTask, ...], msgspec.Meta(min_length=1)]
    width: Side = 1024
    height: Side = 1024
    multiple_of: Count = 16
    max_side: Side = 2048
    max_pixels: Annotated[int, msgspec.Meta(ge=64, le=1 << 28)] = 2048 * 2048
    max_total_pixels: Annotated[int, msgspec.Meta(ge=64, le=1 << 34)] = 1 << 28
    steps: Count = 28
    max_steps: Count = 100
    guidance: Annotated[float, msgspec.Meta(ge=0, le=100)] = 4.0
    pictures: Count = 81
    picture_rate: Annotated[int, msgspec.Meta(ge=1, le=240)] = 16
    pictures_modulo: Count = 4
    max_pictures: Count = 241
    sound_s: Annotated[float, msgspec.Meta(gt=0, le=3600)] = 10.0
    max_sound_s: Annotated[float, msgspec.Meta(gt=0, le=3600)] = 47.0
    max_total_sound_s: Annotated[float, msgspec.Meta(gt=0, le=36_000)] = 120.0
    max_prompt_chars: Count = 32_000

    def offers(self, task: MediaTask) -> bool:
        """Tell whether clients may ask for this."""
        return task in self.serves
