"""What a stream said and heard, frame by frame: enough to go through it again.

With it a stream is taken back to what a person has heard, or forked; one whose worker was lost
begins with one (``beginnings.py`` makes it of what the plugin has kept). It holds the frames of one
window, 17 numbers each; older ones are overwritten.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from duologue.engines.models.moshi_lm.config import MoshiConfig
from duologue.engines.models.moshi_lm.token_grid import Frame

Numbers = npt.NDArray[np.int32]


class TokenLog:
    """The frames of one stream, by their position.

    Args:
        begin: The position of ``first``.
        first: The frame before the first one that was made: the end of the prompt.
    """

    __slots__ = ("_codebooks", "_frames", "begin", "end")

    def __init__(self, config: MoshiConfig, begin: int, first: Frame) -> None:
        self._codebooks = config.codebooks
        self._frames: Numbers = np.zeros((config.window + 1, config.streams), np.int32)
        self.begin = begin
        self.end = begin
        self.append(np.array((first.text, *first.said, *first.heard), np.int32))

    @property
    def oldest(self) -> int:
        """The position of the oldest frame that is still there."""
        return max(self.begin, self.end - len(self._frames))

    def append(self, tokens: Numbers) -> None:
        """Add the next frame.

        Shapes:
            tokens: [streams] text, codes said, codes heard
        """
        self._frames[self.end % len(self._frames)] = tokens
        self.end += 1

    def frame(self, position: int) -> Frame:
        """Return one frame.

        Raises:
            IndexError: It is not there any more, or not yet.
        """
        if not self.oldest <= position < self.end:
            raise IndexError(f"frame {position} is not among {self.oldest} to {self.end - 1}")
        text, *codes = self._frames[position % len(self._frames)].tolist()
        return Frame(text, tuple(codes[: self._codebooks]), tuple(codes[self._codebooks :]))

    def truncate(self, position: int) -> None:
        """Forget the frames from a position on."""
        assert self.oldest < position <= self.end
        self.end = position

    def copy(self) -> TokenLog:
        """Return a log of its own for a fork."""
        copied = object.__new__(TokenLog)
        copied._codebooks, copied._frames = self._codebooks, self._frames.copy()
        copied.begin, copied.end = self.begin, self.end
        return copied
