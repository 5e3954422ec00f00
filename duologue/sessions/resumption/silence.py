"""Tells a connection that holds sound back when nothing of it is to be heard any more.

This module must not know why, nor what is done about it.
"""

from __future__ import annotations

import weakref
from collections.abc import Collection

from duologue.sessions.port import Attachment, HoldsSound
from duologue.sessions.resumption.journal import Journal
from duologue.sessions.speaking.speaking import Speaking


def tell_of_silence(speaking: Speaking, journal: Journal | None, attachment: Attachment) -> None:
    """From now on tell this connection, where it wants to know, and no other."""
    withdraw = None if journal is None else journal.withdraw
    if not isinstance(attachment, HoldsSound):
        speaking.on_silence = None
        speaking.playback.on_silenced = withdraw
        return
    # Weak, or connection and session would hold each other.
    holder = weakref.ref(attachment)

    def on_silence(beside: Collection[str]) -> None:
        if (told := holder()) is not None:
            told.on_silenced("", beside)

    def on_silenced(item_id: str) -> None:
        if withdraw is not None:
            withdraw(item_id)
        if (told := holder()) is not None:
            told.on_silenced(item_id)

    speaking.on_silence = on_silence
    speaking.playback.on_silenced = on_silenced
