"""The fields of a video request against what a model offers.

This module must not know routes.
"""

from __future__ import annotations

import msgspec

from duologue.codecs.pictures import UNDECODABLE_PICTURE, check_picture
from duologue.core.errors import ClientError
from duologue.engines.media_offer import MediaOffer
from duologue.engines.media_payloads import MakeVideo
from duologue.gateway.media import checks
from duologue.protocol.errors import over_limit, refused, shown

_MOST_SECONDS = 86_400
"""Whatever a model can make; its own limit is told as that."""


class VideoFields(msgspec.Struct, frozen=True, kw_only=True):
    """What may be said of a video.

    Args:
        seconds: Its length, as a number or text; or ``num_frames``: how many pictures.
        fps: Pictures a second.
        strength: Where it begins with a video: how much of that may change, up to 1.
        overlap: Pictures that two windows of a long video share.
    """

    prompt: str
    seconds: str | float | None = None
    size: str | None = None
    num_frames: int | None = None
    fps: int | None = None
    negative_prompt: str | None = None
    num_inference_steps: int | None = None
    guidance_scale: float | None = None
    seed: int | None = None
    strength: float | None = None
    overlap: int | None = None


def video_of(fields: VideoFields, offer: MediaOffer, reference: bytes, drawn: int) -> MakeVideo:
    """Return what is asked of the engine.

    Args:
        reference: A picture or a video to begin with, told by its content; empty: none.
        drawn: The seed where the client gives none.

    Raises:
        ClientError: Something is out of bounds.
    """
    width, height = checks.size_of(fields.size, offer)
    rate = _rate(fields.fps, offer)
    pictures = _pictures(fields, rate, offer)
    checks.check_total(width * height * pictures, offer, "seconds")
    image, source = _reference(reference, offer)
    overlap = fields.overlap or 0
    if not 0 <= overlap < pictures:
        raise refused(f"overlap is {overlap}; a window has {pictures} pictures", "overlap")
    return MakeVideo(
        checks.check_prompt(fields.prompt, offer),
        width,
        height,
        pictures,
        rate,
        checks.steps_of(fields.num_inference_steps, offer),
        checks.guidance_of(fields.guidance_scale, offer),
        checks.seed_of(fields.seed, drawn),
        negative=fields.negative_prompt or "",
        image=image,
        source=source,
        strength=checks.strength_of(fields.strength),
        overlap=overlap,
    )


def _rate(given: int | None, offer: MediaOffer) -> int:
    if given is None:
        return offer.picture_rate
    if not 1 <= given <= 240:
        raise refused(f"fps is {given}; it may be 1 to 240", "fps")
    return given


def _pictures(fields: VideoFields, rate: int, offer: MediaOffer) -> int:
    """Return how many pictures, as the model can make them: not more than was asked for."""
    if fields.num_frames is not None:
        wanted, param = fields.num_frames, "num_frames"
    elif fields.seconds is not None:
        wanted, param = int(_seconds(fields.seconds) * rate), "seconds"
    else:
        wanted, param = offer.pictures, "num_frames"
    if wanted < 1:
        raise refused(f"{param} asks for {wanted} pictures; a video has at least one", param)
    if wanted > offer.max_pictures:
        raise over_limit("the video", wanted, offer.max_pictures, param, "pictures")
    if offer.pictures_modulo == 1:
        return wanted
    return (wanted - 1) // offer.pictures_modulo * offer.pictures_modulo + 1


def _seconds(given: str | float) -> float:
    try:
        seconds = float(given)
    except ValueError:
        seconds = -1.0
    if not 0 < seconds <= _MOST_SECONDS:
        raise refused(
            f"seconds is {shown(given)}; it may be a number above 0, and {_MOST_SECONDS} at most",
            "seconds",
        )
    return seconds


def _reference(data: bytes, offer: MediaOffer) -> tuple[bytes, bytes]:
    """Tell a picture from a video by its content."""
    if not data:
        return b"", b""
    try:
        check_picture(data, offer.max_pixels, "input_reference")
        return data, b""
    except ClientError as exc:
        if exc.code != UNDECODABLE_PICTURE:
            raise
    if not offer.offers("video_edits"):
        raise refused(
            "input_reference is no PNG, JPEG or WebP, and this model works on no videos",
            "input_reference",
        )
    return b"", data
