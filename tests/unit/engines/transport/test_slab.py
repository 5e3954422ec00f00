from __future__ import annotations

import mmap
import threading
from collections.abc import Iterator

import pytest

from duologue.engines.transport.memory_file import MemoryFile
from duologue.engines.transport.port import Handle, PayloadLost
from duologue.engines.transport.slab import SLOTS, Region, SlabReader, SlabStore
from tests.unit.engines.transport.transport_contract import (
    Ends,
    TransportContract,
    by_then,
    payload,
    put,
)

SIZE = 2**20 + 4096


class OnOneHost:
    """The ends map the memory each for itself, as they do in two processes."""

    def __init__(self, size_bytes: int = SIZE) -> None:
        self.memory = MemoryFile.create("test")
        self.region = Region(self.memory.grow(size_bytes), size_bytes)
        self.lives = 0
        self.writer_dies()
        self.reader = SlabReader(self.memory)

    def writer_dies(self) -> None:
        self.lives += 1
        self.store = SlabStore(self.memory, self.region, first_generation=self.lives << 32)

    def reader_dies(self) -> None:
        self.reader = SlabReader(self.memory)

    def close(self) -> None:
        self.store.close()
        self.reader.close()
        self.memory.close()


class TestSlab(TransportContract):
    @pytest.fixture
    def ends(self) -> Iterator[Ends]:
        ends = OnOneHost()
        yield ends
        ends.close()

    def test_the_same_pages_are_used_again(self) -> None:
        ends = OnOneHost(64 * 2**20)
        for number in range(100):
            handle = put(ends, payload(number, 500_000))
            ends.store.free(handle)
        assert ends.memory.resident_bytes < 2**20
        ends.close()

    def test_a_release_that_another_thread_brings_makes_room_for_the_next(self) -> None:
        ends = OnOneHost()
        handle = put(ends, bytes(2**20))
        assert ends.store.put(bytes(2**20)) is None
        thread = threading.Thread(target=ends.store.free_later, args=(handle,))
        thread.start()
        thread.join()
        put(ends, bytes(2**20))
        ends.close()

    def test_there_is_a_number_to_the_payloads_whatever_their_size(self) -> None:
        ends = OnOneHost()
        handles = [put(ends, b"") for _ in range(SLOTS)]
        assert ends.store.put(b"") is None
        ends.store.free(handles[7])
        put(ends, b"")
        ends.close()

    def test_a_reader_cannot_write(self) -> None:
        ends = OnOneHost()
        with ends.memory.map(*ends.region, writable=False) as read_only, pytest.raises(TypeError):
            read_only[0] = 1
        ends.close()

    def test_memory_that_was_used_again_while_it_was_read_is_noticed(self) -> None:
        # The reader's copy is stopped half-way by a writer that does all that it can.
        ends = OnOneHost()
        old = put(ends, payload(1, 300_000))
        reads, stop = [], threading.Event()

        def read_on() -> None:
            reader = SlabReader(ends.memory)
            while not stop.is_set():
                try:
                    reads.append(reader.get(old))
                except PayloadLost:
                    break
            reader.close()

        thread = threading.Thread(target=read_on)
        thread.start()
        ends.store.free(old)
        put(ends, payload(2, 300_000))
        thread.join()
        assert set(reads) <= {payload(1, 300_000)}
        ends.close()

    @pytest.mark.parametrize(
        "place", ["", "here", "1+2+3", "-4096+4096", f"{2**40}+4096", "0+0", "0+64"]
    )
    def test_places_that_are_none_are_refused(self, place: str) -> None:
        ends = OnOneHost()
        with pytest.raises(PayloadLost):
            ends.reader.get(Handle(place, 0, 1, 1), by_then())
        ends.close()

    def test_a_place_names_a_region(self) -> None:
        assert Region.at(Region(8192, mmap.PAGESIZE).place) == Region(8192, mmap.PAGESIZE)
