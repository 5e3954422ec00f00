"""What travels into and out of stages that make pictures, videos and sounds.

A part of the union of all payloads (see ``payloads``), in a file of its own. Results are encoded,
so that only bytes travel. This module must not know how anything is made.
"""

from __future__ import annotations

from typing import Literal

from duologue.engines.payload_base import PayloadBase


class LoraChoice(PayloadBase, frozen=True):
    """An adapter that the stage has loaded, by its name there, and how much of it."""

    name: str
    scale: float = 1.0


class DrawImage(PayloadBase, frozen=True):
    """Ask for one image.

    Args:
        steps: Of denoising.
        seed: The same seed gives the same image.
        partials: How many views of the unfinished image to give, evenly over the steps.
        media: Of what is given out: ``png``, ``jpeg`` or ``webp``.
        quality: 0 to 100, for ``jpeg`` and ``webp``.
        image: An encoded picture to begin with, empty for none; ``strength`` says how much of it
            may change. What the encoded ``mask`` shows white, or transparent, alone may change.

    Units:
        Pixels; ``strength`` is 0 to 1.
    """

    prompt: str
    width: int
    height: int
    steps: int
    guidance: float
    seed: int
    negative: str = ""
    partials: int = 0
    media: Literal["png", "jpeg", "webp"] = "png"
    quality: int = 100
    lora: LoraChoice | None = None
    image: bytes = b""
    mask: bytes = b""
    strength: float = 0.8


class MakeVideo(PayloadBase, frozen=True):
    """Ask for a video.

    Args:
        pictures: How many, shown at ``picture_rate`` a second.
        image: An encoded picture that it begins with; empty: none.
        source: A video file to work on, whose sound is kept; empty: none. ``strength`` says how
            much of it may change. Longer ones are made in windows of ``pictures`` pictures.
        overlap: Pictures that two windows share.
    """

    prompt: str
    width: int
    height: int
    pictures: int
    picture_rate: int
    steps: int
    guidance: float
    seed: int
    negative: str = ""
    lora: LoraChoice | None = None
    image: bytes = b""
    source: bytes = b""
    strength: float = 0.8
    overlap: int = 0


class MakeSound(PayloadBase, frozen=True):
    """Ask for a sound of ``seconds``."""

    prompt: str
    seconds: float
    steps: int
    guidance: float
    seed: int
    negative: str = ""


class StepsDone(PayloadBase, frozen=True):
    """How far a picture, video or sound is: ``done`` of ``total`` units of work."""

    done: int
    total: int

    def cost(self) -> int:
        """Nothing: it describes what is to come."""
        return 0


class ImageData(PayloadBase, frozen=True):
    """An encoded image; with ``partial`` from 0 on, a view of it while it is not finished."""

    data: bytes
    media: Literal["png", "jpeg", "webp"]
    width: int
    height: int
    partial: int = -1


class VideoData(PayloadBase, frozen=True):
    """The next bytes of a fragmented MP4; the first ones have its header.

    Args:
        pictures: How many it adds.
        mime: With the codecs, as browsers ask for it.
    """

    data: bytes
    pictures: int
    mime: str


class SoundData(PayloadBase, frozen=True):
    """A run of s16le samples, the channels of each one after another."""

    pcm: bytes
    rate_hz: int
    channels: int
