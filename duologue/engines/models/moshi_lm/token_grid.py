"""Which token stands where: frames as they sound, rows as the model reads them.

The first code of a frame stands at the frame's own position, with its text; the others stand one
position later. So a row holds parts of two frames, and what is said in a frame is complete once the
next position has been written. This module is pure and needs no torch.

A step reads the row of a position and writes what the model says at the next one. It is taken as
soon as the person's frame is there: of the row of position p everything else was known before.

Source:
    Moshi paper, section 3.4.2 (acoustic delay); the order is that of the package ``moshi``. The
    reference of PersonaPlex takes the same step one frame later, to the same result.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from duologue.engines.models.moshi_lm.config import MoshiConfig

Row = tuple[int, ...]
"""Text, what is said, what is heard: as many tokens as ``MoshiConfig.streams``."""


class Frame(NamedTuple):
    """80 ms of a call: the text token, the codes of what is said and of what is heard."""

    text: int
    said: tuple[int, ...]
    heard: tuple[int, ...]


class Spoken(NamedTuple):
    """What the model says in one frame."""

    text: int
    codes: tuple[int, ...]


def first_frame(config: MoshiConfig) -> Frame:
    """Return the frame before anything was said or heard: no model ever sees another one first."""
    codes = (config.audio_initial,) * config.codebooks
    return Frame(config.text_initial, codes, codes)


def row(config: MoshiConfig, frame: Frame, before: Frame) -> Row:
    """Return the row of a frame's position."""
    return (
        frame.text,
        *_delayed(config, frame.said, before.said),
        *_delayed(config, frame.heard, before.heard),
    )


def rows(config: MoshiConfig, frames: Iterable[Frame], before: Frame) -> list[Row]:
    """Return the rows of successive frames, the first of which follows ``before``."""
    made = []
    for frame in frames:
        made.append(row(config, frame, before))
        before = frame
    return made


def _delayed(config: MoshiConfig, now: Sequence[int], before: Sequence[int]) -> Iterable[int]:
    return (
        old if delay else new for delay, new, old in zip(config.delays, now, before, strict=True)
    )


class TokenGrid:
    """The tokens of one stream that the next step needs, and the frames that have become whole.

    Args:
        before: The last frame that was given rather than made: the end of a prompt, or of what is
            gone through again. The late codes of it are what the next row says, whatever the
            step before would have chosen for them.
        text, said: What the step at its position chose: the beginning of the first frame made.
    """

    def __init__(self, config: MoshiConfig, before: Frame, text: int, said: Sequence[int]) -> None:
        self._config = config
        self._heard = before.heard
        self._text = text
        self._said = tuple(_delayed(config, said, before.said))

    def row(self, heard: Sequence[int]) -> Row:
        """Return the row to read, now that the person's frame is there."""
        return (self._text, *self._said, *_delayed(self._config, heard, self._heard))

    def wrote(self, heard: Sequence[int], text: int, said: Sequence[int]) -> Spoken:
        """Take what the step chose, and return what is said in the frame of its row."""
        codes = tuple(_delayed(self._config, self._said, said))
        spoken = Spoken(self._text, codes)
        self._heard, self._text, self._said = tuple(heard), text, tuple(said)
        return spoken
