"""What is left to a connection whose session goes on without it: some last words.

This module must not know sessions.
"""

from __future__ import annotations

from collections.abc import Sequence

from duologue.protocol.commands import Command
from duologue.protocol.events import ErrorBody
from duologue.sessions.port import Attachment, Batch, Delivery


class LastWords:
    """Stands where the session stood; what the client says to it leads to nothing."""

    def __init__(self, deliveries: Sequence[Delivery]) -> None:
        self.id = ""
        self._left = list(deliveries)

    def attach(self, attachment: Attachment) -> None:
        """Change nothing."""

    def detach(self, attachment: Attachment) -> None:
        """Change nothing."""

    def offer(self, command: Command) -> None:
        """Leave it alone: the session belongs to somebody else."""

    def reject(self, error: ErrorBody) -> None:
        """Leave it alone."""

    def played(self, item_id: str, played_ms: int) -> None:
        """Leave it alone."""

    def pull(self, max_bytes: int) -> Batch:
        """Return the last words, once."""
        left, self._left = self._left, []
        return Batch(left, False)
