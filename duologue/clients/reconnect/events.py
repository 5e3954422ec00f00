"""What a program is told about the connection of its call. None of it ever travels.

They come among the server's events, in the order in which things happened. This module must not
know connections.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec


class Reconnecting(msgspec.Struct, frozen=True, kw_only=True):
    """The connection is lost, and is dialled again; comes before each attempt.

    What the person says meanwhile is kept, and what has arrived of an answer plays on.
    """

    attempt: int
    """1 is the first one after the connection was lost."""

    wait_s: float
    """Until it begins."""

    because: str
    """What ended the connection, or the attempt before."""


class Reconnected(msgspec.Struct, frozen=True, kw_only=True):
    """The call goes on where it stood: the same session, nothing doubled, nothing lost."""

    gap_s: float
    """How long there was no connection, as far as was noticed."""

    attempts: int
    sent_again: int
    """Messages that the server did not have."""

    dropped_ms: int
    """What the person said first, and was not kept because too much was said; 0 is the rule."""

    rolled_over_from: str | None = None
    """The session before, where the conversation goes on in a new one: the old one had reached its
    age limit, or was lost with its server."""


class AudioDropped(msgspec.Struct, frozen=True, kw_only=True):
    """More is said than is kept while there is no connection; comes once for each outage.

    The oldest goes first. ``Reconnected`` says how much it was.
    """


class CallLost(msgspec.Struct, frozen=True, kw_only=True):
    """The call cannot go on; the last event. What waits for the call raises its error."""

    code: str
    """Of the error: ``session_gone``, or ``connection_lost`` where nobody was reached."""

    message: str
    """What to do, too."""


LineEvent: TypeAlias = Reconnecting | Reconnected | AudioDropped | CallLost
