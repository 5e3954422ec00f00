"""What an engine says of a step. This module must not know how it came about."""

from __future__ import annotations

from typing import NamedTuple

from duologue.engines.runners.streaming_lm.prepared import Samples


class SpokenFrame(NamedTuple):
    """What a stream said in one frame.

    Args:
        frame: Counted from its beginning.
        pcm: [frame_samples] float32; text: the token; said, heard: the codes.
    """

    slot: int
    frame: int
    pcm: Samples
    text: int
    said: tuple[int, ...]
    heard: tuple[int, ...]
