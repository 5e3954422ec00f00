"""A batch of requests as the arguments of one call of a pipeline.

One request alone is asked for exactly as the library's documentation does it, so that its result is
the library's own. This module must not know when the call is made.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from PIL import Image

from duologue.codecs.pictures import decode
from duologue.core.errors import ClientError, EngineError
from duologue.engines.media_payloads import DrawImage, MakeSound, MakeVideo
from duologue.engines.runners.diffusion.batching import LIMIT_EXCEEDED, UNSUPPORTED, Ask
from duologue.engines.runners.diffusion.pipelines import Use
from duologue.engines.runners.diffusion.settings import DiffusionSettings

_NEEDS_NEGATIVE = ("true_cfg_scale",)
"""Kinds of guidance that only a negative prompt switches on."""


def use_of(ask: Ask) -> Use:
    """Return what a request begins with."""
    match ask:
        case DrawImage(image=image, mask=mask) if image:
            return "mask" if mask else "image"
        case MakeVideo(source=source) if source:
            return "video"
        case MakeVideo(image=image) if image:
            return "first_picture"
        case _:
            return "text"


def arguments(asks: Sequence[Ask], names: set[str], settings: DiffusionSettings) -> dict[str, Any]:
    """Return the arguments of the call that makes all of a batch.

    Args:
        names: Of the arguments that the pipeline takes.

    Raises:
        EngineError: The pipeline cannot do what is asked, or a picture cannot be used.
    """
    first = asks[0]
    call: dict[str, Any] = {name: value for name, value in settings.call.items() if name in names}
    call["prompt"] = _one_or_all([ask.prompt for ask in asks])
    call["generator"] = _one_or_all([torch.Generator().manual_seed(ask.seed) for ask in asks])
    call["num_inference_steps"] = first.steps
    call[settings.guidance_field] = first.guidance
    needs_negative = settings.guidance_field in _NEEDS_NEGATIVE
    if any(ask.negative for ask in asks) or needs_negative:
        call["negative_prompt"] = _one_or_all([ask.negative or " " for ask in asks])
    match first:
        case DrawImage():
            call |= {"width": first.width, "height": first.height, "output_type": "np"}
            call |= _pictures(first, settings)
        case MakeVideo():
            call |= {"width": first.width, "height": first.height, "output_type": "np"}
            if not first.source:
                call["num_frames"] = first.pictures
            if first.image:
                call["image"] = _picture(first.image, settings.max_total_pixels)
            elif first.source:
                call["strength"] = first.strength
        case MakeSound():
            call |= _length(first, names)
    unknown = call.keys() - names
    # A picture's size is that of the picture it begins with, for pipelines that ask for none.
    if unknown - {"width", "height"}:
        raise EngineError(f"the pipeline takes no {', '.join(sorted(unknown))}", code=UNSUPPORTED)
    return {name: value for name, value in call.items() if name in names}


def _one_or_all(values: list[Any]) -> Any:
    return values[0] if len(values) == 1 else values


def _pictures(ask: DrawImage, settings: DiffusionSettings) -> dict[str, Any]:
    if not ask.image:
        return {}
    limit = settings.max_total_pixels
    found: dict[str, Any] = {"image": _picture(ask.image, limit), "strength": ask.strength}
    if ask.mask:
        found["mask_image"] = _mask(ask.mask, limit)
    return found


def _picture(data: bytes, max_pixels: int) -> Image.Image:
    return Image.fromarray(_decoded(data, max_pixels)).convert("RGB")


def _mask(data: bytes, max_pixels: int) -> Image.Image:
    """White where something may change: where the mask is transparent, else where it is white."""
    pixels = _decoded(data, max_pixels)
    if pixels.shape[2] == 4:
        return Image.fromarray(255 - pixels[:, :, 3])
    return Image.fromarray(pixels).convert("L")


def _decoded(data: bytes, max_pixels: int) -> Any:
    try:
        return decode(data, max_pixels)
    except ClientError as exc:
        code = LIMIT_EXCEEDED if "limit" in exc.code else exc.code
        raise EngineError(exc.message, code=code) from exc


def _length(ask: MakeSound, names: set[str]) -> dict[str, Any]:
    if "audio_end_in_s" in names:
        return {"audio_end_in_s": ask.seconds, "output_type": "np"}
    return {"audio_length_in_s": ask.seconds, "output_type": "np"}
