"""What a model that sees is shown of a camera: some frames with each turn of the person.

Frames become pictures in the turn's item. They stay in the conversation for a few turns, since
"what was that?" is asked afterwards, and are taken out of it again. This module must not know
turns, nor what a picture means to a model.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from duologue.codecs.picture_urls import url_of
from duologue.protocol.duplex.commands import ShowFrame
from duologue.protocol.duplex.events import FrameAcknowledged, FramesConsumed
from duologue.protocol.errors import over_limit
from duologue.protocol.items import InputImage
from duologue.sessions.history.history import History
from duologue.sessions.seeing.frame_window import Frame, FrameWindow
from duologue.sessions.settings import FrameSettings


class Sight:
    """The frames of one session, whose model sees."""

    def __init__(self, settings: FrameSettings, history: History) -> None:
        self._settings = settings
        self._history = history
        self.window = FrameWindow(settings)
        self._turns: deque[tuple[str, int]] = deque()
        """Items that hold frames, and how many, oldest first."""

    def show(self, command: ShowFrame, now: float) -> FrameAcknowledged | None:
        """Take a frame; returns what its sender is told, who may not want to know.

        Raises:
            LimitExceeded: It is too large; nothing changed.
        """
        size, limit = len(command.data), self._settings.max_bytes
        if size > limit:
            raise over_limit("the frame", size, limit, "data", "bytes")
        gone = self.window.add(Frame(command.data, command.frame_id), now)
        if command.frame_id is None:
            return None
        return FrameAcknowledged(
            frame_id=command.frame_id,
            buffered_frames=len(self.window),
            dropped_frame_ids=tuple(each.frame_id for each in gone if each.frame_id is not None),
        )

    def give(self, item_id: str) -> Iterator[FramesConsumed]:
        """Put frames into an item of the person, which is in the history; yields what to say of it.

        Where the conversation has no room for all of them, the newest go in.
        """
        frames = self.window.chosen()
        if not frames:
            return
        while len(self._turns) >= self._settings.turns:
            self._history.drop_last_parts(*self._turns.popleft())
        parts = [InputImage(image_url=url_of(frame.data)) for frame in frames]
        room = self._history.room_bytes
        while parts and sum(len(part.image_url) for part in parts) > room:
            del parts[0], frames[0]
        self.window.clear()
        if not parts:
            return
        self._history.add_parts(item_id, tuple(parts))
        self._turns.append((item_id, len(parts)))
        named = tuple(frame.frame_id for frame in frames if frame.frame_id is not None)
        yield FramesConsumed(item_id=item_id, frames=len(frames), frame_ids=named)
