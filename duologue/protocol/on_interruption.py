"""What an interruption does to an event, as part of the event's type.

This module must not know any event.
"""

from __future__ import annotations

from enum import Enum


class OnInterruption(Enum):
    """What an interruption, or a client that reads too slowly, does to an event."""

    MUST_DELIVER = "must_deliver"
    """Stays in order, whatever happens."""

    CLEARABLE = "clearable"
    """Belongs to speech that nobody has heard yet: an interruption takes it back."""

    DROPPABLE = "droppable"
    """Progress: may be left out when the client is slow."""
