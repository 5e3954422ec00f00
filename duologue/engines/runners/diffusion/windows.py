"""Long videos in windows that overlap, and how two windows become one run of pictures. Pure.

This module must not know how a window is made.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

Film = NDArray[np.float32]
"""[pictures, height, width, 3], 0 to 1."""


def in_windows(pictures: Iterable[Film], length: int, overlap: int) -> Iterator[Film]:
    """Cut a run of pictures into windows of ``length`` that share ``overlap`` pictures.

    The last one is as long as what is left, unless that is only what it shares: then there is
    none. Only one window is held at a time.

    Args:
        pictures: Each [height, width, 3].
    """
    if not 0 <= overlap < length:
        raise ValueError(f"windows of {length} pictures cannot share {overlap}")
    window: list[Film] = []
    fresh = 0
    for picture in pictures:
        window.append(picture)
        fresh += 1
        if len(window) == length:
            yield np.stack(window)
            window = window[length - overlap :]
            fresh = 0
    if fresh:
        yield np.stack(window)


class Blender:
    """Joins windows: where two overlap, the first fades out while the second fades in.

    The weights of a picture that is in both are in the middle of their step, so that neither is
    shown alone there: i + 1 of overlap + 1.

    Args:
        overlap: As of ``in_windows``.
    """

    def __init__(self, overlap: int) -> None:
        self._overlap = overlap
        self._tail: Film | None = None

    def add(self, window: Film, *, is_last: bool) -> Film:
        """Return the pictures that are final once this window is there."""
        if self._tail is not None:
            shared = len(self._tail)
            weights = np.arange(1, shared + 1, dtype=np.float32) / (shared + 1)
            faded = weights[:, None, None, None]
            mixed = self._tail * (1 - faded) + window[:shared] * faded
            window = np.concatenate((mixed, window[shared:]))
        if is_last or not self._overlap:
            self._tail = None
            return window
        self._tail = window[-self._overlap :]
        return window[: -self._overlap]
