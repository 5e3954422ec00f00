"""What a worker is told of the slab before anything else: its memory, and which part is whose.

The descriptor of the memory travels over the socket itself. This module must not know what lies in
the memory.
"""

from __future__ import annotations

import os
import socket
import struct
from typing import NamedTuple

from duologue.engines.transport.memory_file import MemoryFile
from duologue.engines.transport.slab import Region

WITH_SLAB = "slab"
"""Tells a worker that it will hear of a seat."""

_SEAT = struct.Struct("<5Q")
_NONE = bytes(_SEAT.size)


class Seat(NamedTuple):
    """A worker's place at a slab.

    Args:
        to_worker: What the engine writes; ``from_worker``: what the worker does.
        first_generation: Larger than any of those who sat here before.
    """

    to_worker: Region
    from_worker: Region
    first_generation: int


def offer_seat(link: socket.socket, memory: MemoryFile | None, seat: Seat | None) -> None:
    """Say where a worker's seat is, or that there is none.

    Raises:
        OSError: The other end is gone.
    """
    if memory is None or seat is None:
        link.sendall(_NONE)
        return
    words = _SEAT.pack(*seat.to_worker, *seat.from_worker, seat.first_generation)
    socket.send_fds(link, [words], [memory.fd])


def take_seat(link: socket.socket) -> tuple[MemoryFile, Seat] | None:
    """Hear where the seat is.

    Raises:
        EOFError: The other end is gone.
    """
    words, fds, _, _ = socket.recv_fds(link, _SEAT.size, 1, socket.MSG_CMSG_CLOEXEC)
    if len(words) < _SEAT.size:
        raise EOFError("the engine is gone before it said anything")
    if not fds:
        return None
    # Python 3.11 hands no flag on to the system, so the one above does nothing there.
    os.set_inheritable(fds[0], False)
    start, size, own_start, own_size, generation = _SEAT.unpack(words)
    seat = Seat(Region(start, size), Region(own_start, own_size), generation)
    return MemoryFile(fds[0]), seat
