"""Which of several session hosts a client is sent to. Pure.

This module must not know links.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

from duologue.core.ids import IdMaker
from duologue.hosts.messages import Status

TAG_CHARS = 6


def tagged_ids(make: IdMaker, tag: str) -> IdMaker:
    """Return a maker of ids whose sessions say which host they are of."""

    def make_tagged(prefix: str) -> str:
        return make(f"sess_{tag}") if prefix == "sess" else make(prefix)

    return make_tagged


def tag_of(session_id: str) -> str | None:
    """Return the tag of the host that a session is of; ``None`` where its id has none."""
    parts = session_id.split("_")
    return parts[1] if len(parts) == 3 and len(parts[1]) == TAG_CHARS else None


def by_room(statuses: Sequence[Status | None]) -> list[int]:
    """Return the places of hosts that take new calls at once, the one with the most room first.

    Args:
        statuses: ``None`` for a host that cannot be reached.
    """
    able = [
        (status.max_sessions - status.sessions, place)
        for place, status in enumerate(statuses)
        if status is not None and status.loaded and status.accepting and not status.waiting
    ]
    # Equals in their order: the first is of this machine.
    return [place for room, place in sorted(able, key=lambda each: -each[0]) if room > 0]


def owner_of(name: str, tags: Sequence[str]) -> int:
    """Return which host counts or keeps something by its name: the same for every gateway."""
    return ranked_owners(name, tags)[0]


def ranked_owners(name: str, tags: Sequence[str]) -> list[int]:
    """Return the places of all hosts, the owner first, then who would be in its stead.

    Rendezvous hashing: a host that comes or goes moves the names that are its own, and no others.
    """
    weights = [(zlib.crc32(f"{tag}/{name}".encode()), tag) for tag in tags]
    return sorted(range(len(tags)), key=weights.__getitem__, reverse=True)
