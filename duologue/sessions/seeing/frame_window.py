"""What a camera has shown since the last turn, and which frames of it the next one is given.

Pure; bounded in number, in bytes and in frames a second. The newest frame wins everywhere. This
module must not know items or models.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from duologue.sessions.settings import FrameSettings


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame, as the client sent it.

    Args:
        frame_id: The client's own name for it.
    """

    data: bytes
    frame_id: str | None = None


class FrameWindow:
    """The newest frames.

    Time is in slots: of the frames that fall into one slot the newest stays. A slot begins with
    the first frame after the one before is over.
    """

    def __init__(self, settings: FrameSettings) -> None:
        self._settings = settings
        self._slot_s = 1 / settings.per_s
        self._slot_ends = 0.0
        self._frames: deque[Frame] = deque()
        self.held_bytes = 0

    def __len__(self) -> int:
        return len(self._frames)

    def add(self, frame: Frame, now: float) -> Sequence[Frame]:
        """Add the newest frame; returns those that gave way to it."""
        gone: list[Frame] = []
        if self._frames and now < self._slot_ends:
            gone.append(self._frames.pop())
        else:
            self._slot_ends = now + self._slot_s
        self._frames.append(frame)
        self.held_bytes += len(frame.data) - sum(len(each.data) for each in gone)
        while len(self._frames) > self._settings.kept or (
            self.held_bytes > self._settings.kept_bytes and len(self._frames) > 1
        ):
            oldest = self._frames.popleft()
            self.held_bytes -= len(oldest.data)
            gone.append(oldest)
        return gone

    def chosen(self) -> list[Frame]:
        """Return the frames for a turn, oldest first.

        All of them where there are no more than ``per_turn``; else the newest, the oldest, and
        others at even distances between.
        """
        count, most = len(self._frames), self._settings.per_turn
        if count <= most:
            return list(self._frames)
        newest = count - 1
        if most == 1:
            return [self._frames[newest]]
        return [self._frames[round(at * newest / (most - 1))] for at in range(most)]

    def clear(self) -> None:
        """Forget all frames: a turn was given some of them."""
        self._frames.clear()
        self.held_bytes = 0
        self._slot_ends = 0.0

    def count_held(self) -> int:
        """Count bytes afresh; equals ``held_bytes``. For tests."""
        return sum(len(frame.data) for frame in self._frames)
