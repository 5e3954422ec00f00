"""What one end of a link has to say with its next write.

Everything that a turn of the loop leads to leaves in one write, in order; what only counts is added
up meanwhile. This module must not know sockets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from duologue.hosts.messages import Applied, LinkMessage, Played, Taken


class Outbox:
    """Messages that wait for the next write.

    Bounded by what each channel may have under way: see ``RemoteSession`` and ``ServedChannel``.

    Args:
        due: Called when there is something to write; not again before it was taken.
    """

    __slots__ = (
        "_applied",
        "_due",
        "_first",
        "_messages",
        "_played",
        "_taken",
        "_woken",
        "writable",
    )

    def __init__(self, due: Callable[[], None]) -> None:
        self.writable = True
        """The transport takes more; where it does not, no output is made."""

        self._due = due
        self._woken = False
        self._messages: list[LinkMessage] = []
        self._first: list[Callable[[], None]] = []
        self._taken: Counter[int] = Counter()
        self._applied: Counter[int] = Counter()
        self._played: dict[tuple[int, str], int] = {}

    def put(self, message: LinkMessage) -> None:
        """Say something."""
        self._messages.append(message)
        if not self._woken:
            self._wake()

    def before_write(self, call: Callable[[], None]) -> None:
        """Call ``call`` before the next write: for what must not be done within a call."""
        self._first.append(call)
        if not self._woken:
            self._wake()

    def taken(self, channel: int, size_bytes: int) -> None:
        """Say that output was taken."""
        self._taken[channel] += size_bytes
        if not self._woken:
            self._wake()

    def applied(self, channel: int, size_bytes: int) -> None:
        """Say that input was dealt with."""
        self._applied[channel] += size_bytes
        if not self._woken:
            self._wake()

    def played(self, channel: int, item_id: str, played_ms: int) -> None:
        """Say what was played; of several, the latest is said."""
        self._played[channel, item_id] = played_ms
        if not self._woken:
            self._wake()

    def take(self) -> list[LinkMessage]:
        """Return all of it, in order: what was played first, since it is older than the rest."""
        self._woken = True  # what the calls say goes with this write
        while self._first:
            self._first.pop(0)()
        self._woken = False
        messages, self._messages = self._messages, []
        if self._played:
            heard = [Played(*key, played_ms) for key, played_ms in self._played.items()]
            messages = [*heard, *messages]
            self._played.clear()
        if self._taken:
            messages += [Taken(channel, size) for channel, size in self._taken.items()]
            self._taken.clear()
        if self._applied:
            messages += [Applied(channel, size) for channel, size in self._applied.items()]
            self._applied.clear()
        return messages

    def _wake(self) -> None:
        self._woken = True
        self._due()
