"""Notices a model that is stuck: one sound without end, or one word over and over."""

from __future__ import annotations

from duologue.engines.payloads import LockstepFrame


class StuckCheck:
    """One stream's.

    Args:
        stuck_frames: So many audible frames of the same codes.
        repeated_words: So many times the same word token, whatever is between.
    """

    __slots__ = (
        "_codes",
        "_repeated_words",
        "_same_frames",
        "_same_words",
        "_stuck_frames",
        "_word",
    )

    def __init__(self, stuck_frames: int, repeated_words: int) -> None:
        self._stuck_frames = stuck_frames
        self._repeated_words = repeated_words
        self._codes: tuple[int, ...] = ()
        self._same_frames = 0
        self._word = -1
        self._same_words = 0

    def is_stuck(self, frame: LockstepFrame, *, quiet: bool) -> bool:
        """Look at the next frame."""
        if frame.text:
            self._same_words = self._same_words + 1 if frame.token == self._word else 1
            self._word = frame.token
        if quiet or frame.codes != self._codes or not frame.codes:
            self._same_frames = 0
        self._same_frames += 1
        self._codes = frame.codes
        stuck = bool(frame.codes) and not quiet and self._same_frames >= self._stuck_frames
        return stuck or self._same_words >= self._repeated_words
