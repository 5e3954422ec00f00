"""All that a gateway sees of a session.

Messages are commands and numbered events, so the two ends may stand in different processes: a
local session is called directly, a remote one through batches on a link. This module must not
know sockets, nor what a session does.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from typing import Protocol

import msgspec

from duologue.protocol.commands import Command
from duologue.protocol.events import ErrorBody, Event

UNNUMBERED = 0
"""The number of events that are about the connection alone."""


class Delivery(msgspec.Struct, frozen=True, gc=False):
    """An event with its number in the session, strictly increasing, without gaps; or without."""

    seq: int
    event: Event


class Batch(msgspec.Struct, frozen=True, gc=False):
    """What may be written now; with ``more`` another pull would return more at once."""

    deliveries: list[Delivery]
    more: bool


class Attachment(Protocol):
    """A connection, as a session sees it.

    Concurrency:
        Called on the event loop; no method may raise or wait.
    """

    def on_output(self) -> None:
        """There is something to pull. Not called again before a pull left nothing behind."""
        ...

    def on_end(self, reason: str) -> None:
        """The session is over, for the error code ``reason`` or ``closed``; pull what is left."""
        ...

    def on_let_go(self, reason: str, last_words: Sequence[Delivery]) -> None:
        """The session goes on without this connection: write this, nothing else, and close.

        What comes from the client is no longer for the session. Only connections of resumable
        sessions hear this.
        """
        ...

    def on_pressure(self, on: bool) -> None:
        """Read no more from the client until it is off again: what it said has to be dealt with.

        Only sessions in other processes say this. Here, what is said is dealt with at once; but for
        long appends, and what is said behind them: that waits, and beyond a bound is refused.
        """
        ...


class CallsBackSound(ABC):
    """An attachment that calls sound back from where no event can overtake it: a link.

    Others that hold sound, as phone and WebRTC calls do until it is played, need it not: what they
    pull tells them (``ItemTruncated``), and they pull as soon as there is something.
    """

    __slots__ = ("__weakref__",)

    @abstractmethod
    def on_silenced(self, item_id: str, beside: Collection[str] = ()) -> None:
        """Nothing more of an item is to be heard: drop its sound.

        Args:
            item_id: Empty: of all items but those of the responses ``beside`` the conversation.
        """
        ...


class SessionPort(Protocol):
    """One session.

    Concurrency:
        Belongs to the event loop; no method waits.
    """

    @property
    def id(self) -> str:
        """The session's; empty while there is none yet."""
        ...

    def attach(self, attachment: Attachment) -> None:
        """Make a connection the session's own; an earlier one is told to end (``stale_lease``)."""
        ...

    def detach(self, attachment: Attachment) -> None:
        """The connection is gone, and with it the session, unless that is resumable.

        Does nothing if another connection has taken over meanwhile.
        """
        ...

    def offer(self, command: Command) -> None:
        """Hand in what the client said. The answer, errors included, comes as events.

        Raises:
            MailboxFull: It was refused, and nothing changed.
        """
        ...

    def reject(self, error: ErrorBody) -> None:
        """Answer a message that is no command with an ``error`` event, in its turn."""
        ...

    def played(self, item_id: str, played_ms: int) -> None:
        """Say how much of an item's speech has been played, where the edge plays it.

        Without it, what was heard is estimated from what was sent and when.
        """
        ...

    def pull(self, max_bytes: int) -> Batch:
        """Return what may be written to the connection now, about ``max_bytes`` at most."""
        ...


class Joined(SessionPort, Protocol):
    """What a connection is joined to: a session of its own, or somebody's call to look on at."""

    def close(self, reason: str) -> None:
        """Nobody will attach, or nobody is to be attached any more."""
        ...
