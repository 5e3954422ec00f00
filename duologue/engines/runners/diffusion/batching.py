"""Which requests may be denoised together: those whose tensors have the same shape and schedule.

Pure. This module must not know how a batch is run.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TypeAlias, TypeVar

from duologue.core.errors import EngineError
from duologue.engines.media_payloads import DrawImage, MakeSound, MakeVideo
from duologue.engines.payloads import Payload

Ask: TypeAlias = DrawImage | MakeVideo | MakeSound
T = TypeVar("T")

LIMIT_EXCEEDED = "limit_exceeded"
UNSUPPORTED = "unsupported"


def ask_of(payload: Payload) -> Ask:
    """Return the request that a payload is.

    Raises:
        EngineError: It is none.
    """
    if not isinstance(payload, DrawImage | MakeVideo | MakeSound):
        kind = type(payload).__name__
        raise EngineError(f"a diffusion pipeline draws, films or sounds; it cannot read {kind}")
    return payload


def pixels_of(ask: Ask) -> int:
    """All pixels of what is asked for, known before any of them exists."""
    match ask:
        case DrawImage(width=width, height=height):
            return width * height
        case MakeVideo(width=width, height=height, pictures=pictures):
            return width * height * pictures
        case MakeSound():
            return 0


def shape_of(ask: Ask) -> Hashable:
    """Return what the size of a request's tensors depends on."""
    match ask:
        case DrawImage(width=width, height=height):
            return DrawImage, width, height
        case MakeVideo(width=width, height=height, pictures=pictures):
            return MakeVideo, width, height, pictures
        case MakeSound(seconds=seconds):
            return MakeSound, seconds


def check_size(ask: Ask, max_total_pixels: int) -> None:
    """Refuse what is too large alone.

    Raises:
        EngineError: With the code ``limit_exceeded``.
    """
    pixels = pixels_of(ask)
    if pixels > max_total_pixels:
        raise EngineError(
            f"{pixels} pixels are asked for, the limit is {max_total_pixels}", code=LIMIT_EXCEEDED
        )


def batch_key(ask: Ask) -> Hashable:
    """Return what must be equal; ``None`` for what is always made alone."""
    match ask:
        case DrawImage(image=b""):
            return (
                DrawImage,
                *(ask.width, ask.height, ask.steps, ask.guidance, ask.partials),
                bool(ask.negative),
                ask.lora,
            )
        case MakeVideo(image=b"", source=b""):
            return (
                MakeVideo,
                *(ask.width, ask.height, ask.pictures, ask.steps, ask.guidance),
                bool(ask.negative),
                ask.lora,
            )
        case _:
            return None


def choose_batch(
    waiting: Sequence[T], ask: Callable[[T], Ask], max_batch: int, max_total_pixels: int
) -> list[T]:
    """Choose the oldest that waits and those after it that fit together with it.

    Args:
        ask: What each of them asks for.
    """
    first, *others = waiting
    key = batch_key(ask(first))
    chosen = [first]
    if key is None:
        return chosen
    room = max_total_pixels - pixels_of(ask(first))
    for each in others:
        if len(chosen) == max_batch:
            break
        if batch_key(ask(each)) == key and pixels_of(ask(each)) <= room:
            room -= pixels_of(ask(each))
            chosen.append(each)
    return chosen
