"""What clients write into fields, against what a model offers; nothing is made before this.

This module must not know routes, nor how anything is made.
"""

from __future__ import annotations

import re
from typing import Literal, get_args

from duologue.codecs.pictures import PictureMedia
from duologue.engines.media_offer import MediaOffer
from duologue.protocol.errors import ErrorCode, over_limit, refused, shown

MAX_SEED = (1 << 63) - 1
_SIZE = re.compile(r"([0-9]{1,9})x([0-9]{1,9})")


def check_prompt(prompt: str, offer: MediaOffer, param: str = "prompt") -> str:
    """Return a prompt that may be used.

    Raises:
        ProtocolError: It is empty.
        LimitExceeded: It is too long.
    """
    if not prompt.strip():
        raise refused(f"{param} is empty: say what to make", param)
    if len(prompt) > offer.max_prompt_chars:
        raise over_limit(
            f"{param} is too long", len(prompt), offer.max_prompt_chars, param, "characters"
        )
    return prompt


def size_of(given: str | None, offer: MediaOffer) -> tuple[int, int]:
    """Return width and height.

    Raises:
        ProtocolError: It is no size, or not a multiple of what the model needs.
        LimitExceeded: It is too large.
    """
    if given is None or given == "auto":
        return offer.width, offer.height
    match = _SIZE.fullmatch(given)
    if match is None:
        raise refused(
            f"size is {shown(given)}; it may be auto, or width and height as "
            f"{offer.width}x{offer.height}",
            "size",
        )
    width, height = int(match[1]), int(match[2])
    step = offer.multiple_of
    if not width or not height or width % step or height % step:
        raise refused(
            f"size is {given}; both sides must be multiples of {step} for this model", "size"
        )
    if max(width, height) > offer.max_side:
        raise over_limit("the longer side", max(width, height), offer.max_side, "size", "pixels")
    if width * height > offer.max_pixels:
        raise over_limit("the size", width * height, offer.max_pixels, "size", "pixels")
    return width, height


def check_total(pixels: int, offer: MediaOffer, param: str) -> None:
    """Refuse what is too much in all.

    Raises:
        LimitExceeded: It is.
    """
    if pixels > offer.max_total_pixels:
        raise over_limit("all pictures together", pixels, offer.max_total_pixels, param, "pixels")


def steps_of(given: int | None, offer: MediaOffer) -> int:
    """Return how many steps of denoising to do.

    Raises:
        ProtocolError: It is out of bounds.
    """
    return _within("num_inference_steps", given, offer.steps, 1, offer.max_steps)


def guidance_of(given: float | None, offer: MediaOffer) -> float:
    """Return how closely to follow the prompt.

    Raises:
        ProtocolError: It is out of bounds.
    """
    if given is None:
        return offer.guidance
    if not 0 <= given <= 100:
        raise refused(f"guidance_scale is {given}; it may be 0 to 100", "guidance_scale")
    return float(given)


def sound_s_of(given: float | None, count: int, offer: MediaOffer) -> float:
    """Return how long a sound is.

    Args:
        count: How many such sounds are asked for.

    Raises:
        ProtocolError: It is no length.
        LimitExceeded: It is too long, or all of them together are.
    """
    seconds = offer.sound_s if given is None else given
    if not seconds > 0:
        raise refused(f"seconds is {given}; it may be a number above 0", "seconds")
    if seconds > offer.max_sound_s:
        raise over_limit("the sound", seconds, offer.max_sound_s, "seconds", "s")
    if count * seconds > offer.max_total_sound_s:
        raise over_limit("all sounds together", count * seconds, offer.max_total_sound_s, "n", "s")
    return float(seconds)


def seed_of(given: int | None, drawn: int) -> int:
    """Return the seed: that of the client, else one that was drawn.

    Raises:
        ProtocolError: It is out of bounds.
    """
    return drawn if given is None else _within("seed", given, drawn, 0, MAX_SEED)


def count_of(given: int | None, most: int = 10) -> int:
    """Return how many images to make.

    Raises:
        ProtocolError: It is out of bounds.
    """
    return _within("n", given, 1, 1, most)


def partials_of(given: int | None) -> int:
    """Return how many views of an unfinished image to show.

    Raises:
        ProtocolError: It is out of bounds.
    """
    return _within("partial_images", given, 0, 0, 3)


def quality_of(given: int | None) -> int:
    """Return the quality of an encoded image, 0 to 100.

    Raises:
        ProtocolError: It is out of bounds.
    """
    return _within("output_compression", given, 100, 0, 100)


def strength_of(given: float | None) -> float:
    """Return how much of a picture may change.

    Raises:
        ProtocolError: It is out of bounds.
    """
    if given is None:
        return 0.8
    if not 0 < given <= 1:
        raise refused(f"strength is {given}; it may be above 0 and up to 1", "strength")
    return float(given)


def media_of(given: str | None) -> PictureMedia:
    """Return the format of images.

    Raises:
        ProtocolError: It is none of ours.
    """
    known = get_args(PictureMedia)
    for media in known:
        if given == media:
            found: PictureMedia = media
            return found
    if given is None:
        return "png"
    raise refused(f"output_format is {shown(given)}; it may be {', '.join(known)}", "output_format")


def check_background(given: str | None) -> Literal["auto", "opaque"]:
    """Return what is behind an image.

    Raises:
        ProtocolError: Models here draw every pixel: none is transparent.
    """
    if given in (None, "auto"):
        return "auto"
    if given == "opaque":
        return "opaque"
    raise refused(
        f"background is {shown(given)}; the models here draw every pixel: auto or opaque",
        "background",
        ErrorCode.UNSUPPORTED,
    )


def _within(name: str, given: int | None, default: int, least: int, most: int) -> int:
    if given is None:
        return default
    if not least <= given <= most:
        raise refused(f"{name} is {given}; it may be {least} to {most}", name)
    return given
