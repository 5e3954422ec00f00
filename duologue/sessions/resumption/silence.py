"""A connection as a holder of sound, where it holds any that no event could overtake.

This module must not know why sound is withdrawn, nor what a connection does about it.
"""

from __future__ import annotations

import weakref
from collections.abc import Collection

from duologue.sessions.port import Attachment, CallsBackSound


def sound_under_way(attachment: Attachment) -> SoundUnderWay | None:
    """Return what a connection holds; ``None`` where an event overtakes it all."""
    return SoundUnderWay(attachment) if isinstance(attachment, CallsBackSound) else None


class SoundUnderWay:
    """A ``SoundHolder``."""

    __slots__ = ("_attachment",)

    def __init__(self, attachment: CallsBackSound) -> None:
        # Weak, or connection and session would hold each other.
        self._attachment = weakref.ref(attachment)

    def withdraw(self, item_id: str) -> None:
        """Drop the sound of an item."""
        if (attachment := self._attachment()) is not None:
            attachment.on_silenced(item_id)

    def withdraw_all(self, beside: Collection[str]) -> None:
        """Drop all sound, apart from that of the responses ``beside`` the conversation."""
        if (attachment := self._attachment()) is not None:
            attachment.on_silenced("", beside)
