"""What a stream has said and heard, as tokens, so that another worker can go on with it.

The worker that has the stream keeps a log of its own, to rewind and to fork it; this one is here to
outlive that worker. This module must not know what the tokens mean.
"""

from __future__ import annotations

from array import array

from duologue.engines.payloads import NOT_SAID, LockstepFrame


class ReplayLog:
    """The last frames of one stream, in the form of ``LockstepStart.log``.

    Args:
        most_frames: As many as the model can see; older ones are of no use.
    """

    __slots__ = ("_first", "_most_frames", "_rows", "_said", "_width")

    def __init__(self, most_frames: int) -> None:
        self._most_frames = most_frames
        self._rows = array("H")
        self._first = 0
        self._width = 0
        self._said = 0

    def __len__(self) -> int:
        return len(self._rows) // self._width if self._width else 0

    def add(self, frame: LockstepFrame) -> None:
        """Note the next frame; one that does not say what was heard cannot be gone through."""
        if not frame.heard:
            return
        row = (frame.token, *frame.codes, *frame.heard)
        if not self._rows:
            self._first, self._width, self._said = frame.number, len(row), 1 + len(frame.codes)
        self._rows.extend(row)
        if len(self) > 2 * self._most_frames:
            # Half at a time: taking one from the front would move all others.
            del self._rows[: self._most_frames * self._width]
            self._first += self._most_frames

    def take_back(self, number: int) -> None:
        """Note that nothing was said in this frame and since."""
        silent = array("H", [NOT_SAID] * self._said)
        for index in range(max(0, number - self._first), len(self)):
            start = index * self._width
            self._rows[start : start + self._said] = silent

    def clear(self) -> None:
        """Forget all."""
        del self._rows[:]

    def packed(self) -> bytes:
        """Return the frames as ``LockstepStart.log`` has them."""
        rows = self._rows[-self._most_frames * self._width :] if self._width else self._rows
        if array("H", [1]).tobytes() != b"\x01\x00":
            rows = array("H", rows)
            rows.byteswap()
        return rows.tobytes()
