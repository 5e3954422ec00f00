"""What a session leaves to the one that goes on with its conversation.

Of the assistant's speech it is what was heard, and of the model's memory nothing: the new session
begins with the words. This module must not know sessions or connections.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from duologue.protocol.items import Item, text_bytes
from duologue.protocol.session_config import SessionConfig

_ITEM_BYTES = 256
"""What an item counts as, besides its words."""


class Carried(msgspec.Struct, frozen=True, kw_only=True):
    """One item, and what the wire does not show of it; the fields are as in ``Entry``."""

    item: Item
    interrupted: bool = False
    silence: bool = False
    lost: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inheritance:
    """A conversation between two sessions.

    Args:
        model: The name that the client asked for.
        next_sample: The first of the client's samples that the session did not take in.
        last_event_id: The client's own name for the latest message that it gave one.
        unanswered: The person has finished, and is still to be answered.
        edge_plays: As the session was opened.
    """

    session_id: str
    model: str
    config: SessionConfig
    items: tuple[Carried, ...]
    next_sample: int
    last_event_id: str | None = None
    unanswered: bool
    edge_plays: bool

    @property
    def held_bytes(self) -> int:
        """What it counts as."""
        return sum(_ITEM_BYTES + text_bytes(each.item) for each in self.items)
