"""The inbox: what waits for its turn to be applied; first what the engine said, then the client.

Nearly always empty, since an input is applied as it comes unless another one is. This module must
not know what an input does.
"""

from __future__ import annotations

from collections.abc import Callable

from duologue.core.mailbox import Mailbox
from duologue.engines.ports import EngineEvent
from duologue.protocol.append_audio import AppendAudio
from duologue.sessions.backlog import BACKLOG_BYTES, Backlog, is_long
from duologue.sessions.inputs import Rejected, SessionInput

Judge = Callable[[AppendAudio], AppendAudio | Rejected]
"""Says of a long append how it is to be taken in, or why it is refused."""


class Inbox:
    """Inputs of one session: those of the engine in order, and then those of the client in theirs.

    Args:
        capacity: How many of the engine's may wait, and as many of the client's.
        max_bytes: What those of the client may weigh.
    """

    __slots__ = ("backlog", "events", "waiting")

    def __init__(self, capacity: int, max_bytes: int = BACKLOG_BYTES) -> None:
        self.events: Mailbox[EngineEvent] = Mailbox(capacity)
        self.backlog = Backlog(capacity, max_bytes)
        self.waiting = False
        """Something waits. An attribute, since it is looked at several times for every message."""

    @property
    def client_waits(self) -> bool:
        """Something waits that the client said."""
        return not self.backlog.empty

    def put_event(self, event: EngineEvent) -> None:
        """Add what came out of the engine.

        Raises:
            MailboxFull: Too much waits; nothing changed.
        """
        self.events.put(event)
        self.waiting = True

    def put(self, item: SessionInput) -> None:
        """Add what the client said.

        Raises:
            MailboxFull: Too much waits; nothing changed.
        """
        self.backlog.put(item)
        self.waiting = True

    def take(self) -> SessionInput | None:
        """Remove and return what may be applied at once: nothing that waits for a long append."""
        item = self.events.take() or self.backlog.take_short()
        if item is None:
            self._note()
        return item

    def take_piece(self, judge: Judge) -> SessionInput | None:
        """Remove and return the next of the client's: a slice of a long append, or a whole input.

        ``None`` where a long append has only been judged.
        """
        item: SessionInput | None = self.backlog.take_slice()
        if item is None:
            item = self.backlog.take()
            if isinstance(item, AppendAudio) and is_long(item):
                item = judge(item)
                if isinstance(item, AppendAudio):
                    self.backlog.slice_up(item)
                    item = None
        self._note()
        return item

    def _note(self) -> None:
        self.waiting = len(self.events) > 0 or not self.backlog.empty
