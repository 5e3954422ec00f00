from __future__ import annotations

import os
import socket

import pytest

from duologue.engines.transport.memory_file import MemoryFile
from duologue.engines.transport.slab import Region
from duologue.engines.transport.slab_seat import Seat, offer_seat, take_seat

SEAT = Seat(Region(0, 4096), Region(4096, 8192), 7 << 32)


def test_a_seat_arrives_with_its_memory() -> None:
    ours, theirs = socket.socketpair()
    memory = MemoryFile.create("test")
    memory.grow(12_288)
    with ours, theirs:
        offer_seat(ours, memory, SEAT)
        ours.sendall(b"and then the link begins")
        found = take_seat(theirs)
        assert found is not None
        assert found[1] == SEAT
        assert found[0].size_bytes == 12_288
        assert found[0].fd != memory.fd
        assert not os.get_inheritable(found[0].fd), "what a worker starts gets none of it"
        assert theirs.recv(100) == b"and then the link begins"


def test_there_may_be_no_seat() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        offer_seat(ours, None, None)
        assert take_seat(theirs) is None


def test_an_engine_that_is_gone_is_noticed() -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        ours.close()
        with pytest.raises(EOFError):
            take_seat(theirs)
