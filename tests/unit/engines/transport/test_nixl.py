"""Between two agents of one process, over whatever UCX finds on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest

from duologue.core.clock import SystemClock
from duologue.core.errors import EngineError, StageTimeout
from duologue.engines.transport.nixl import (
    MAX_UNSETTLED,
    NixlReader,
    NixlStore,
    Registered,
    _Claim,
    _encode,
)
from duologue.engines.transport.port import Handle, PayloadLost
from duologue.engines.transport.questions import Asker
from tests.unit.engines.transport.transport_contract import (
    Ends,
    TransportContract,
    by_then,
    put,
)

SECRET = b"a secret of a cluster"
names = (f"agent {number}" for number in count())


def soon(seconds: float = 0.2) -> float:
    return SystemClock().now() + seconds


class OverNixl:
    def __init__(self) -> None:
        self.lives = 0
        self.port = 0
        self.writer_dies()
        self.reader = self.new_reader()

    def new_reader(self) -> NixlReader:
        return NixlReader(next(names), secret=SECRET, max_bytes=2**20)

    def writer_dies(self) -> None:
        if self.lives:
            self.store.close()
        self.lives += 1
        self.store = NixlStore(
            next(names),
            "127.0.0.1",
            self.port,
            secret=SECRET,
            max_bytes=2**20,
            first_generation=self.lives << 32,
        )
        self.port = int(self.store.place.rpartition(":")[2])

    def reader_dies(self) -> None:
        self.store.reader_died(self.reader.name)
        self.reader.close()
        self.reader = self.new_reader()

    def close(self) -> None:
        self.store.close()
        self.reader.close()


@pytest.fixture
def ends() -> Iterator[OverNixl]:
    ends = OverNixl()
    yield ends
    ends.close()


class TestNixl(TransportContract):
    @pytest.fixture
    def ends(self) -> Iterator[Ends]:
        ends = OverNixl()
        yield ends
        ends.close()


def claim(ends: OverNixl, handle: Handle, reader: str, number: int, kind: str = "claim") -> None:
    """Say what a reader says, and no more: it never reads."""
    asker = Asker(SECRET, SystemClock())
    asker.ask(handle.place, _encode(_Claim(kind, handle, reader, number)), by_then())  # type: ignore[arg-type]
    asker.close()


class TestClaims:
    def test_what_is_claimed_is_not_used_again_though_it_was_freed(self, ends: OverNixl) -> None:
        handle = put(ends, bytes(600_000))
        claim(ends, handle, "slow", 1)
        ends.store.free(handle)
        assert ends.store.put(bytes(600_000)) is None
        claim(ends, handle, "slow", 1, kind="settle")
        put(ends, bytes(600_000))

    def test_claims_of_the_dead_are_void(self, ends: OverNixl) -> None:
        handle = put(ends, bytes(600_000))
        claim(ends, handle, "dead", 1)
        ends.store.free(handle)
        assert ends.store.held_bytes > 0
        ends.store.reader_died("dead")
        assert ends.store.held_bytes == 0

    def test_every_read_is_settled(self, ends: OverNixl) -> None:
        handle = put(ends, b"x" * 1000)
        for _ in range(10):
            ends.reader.get(handle, by_then())
        ends.store.free(handle)
        assert ends.store.held_bytes == 0

    def test_a_question_without_an_answer_is_settled_by_the_next_read(self, ends: OverNixl) -> None:
        handle = put(ends, b"x" * 1000)
        for _ in range(5):
            with pytest.raises(StageTimeout):
                ends.reader.get(handle, soon(0.0002))
        assert ends.reader.get(handle, by_then()) == b"x" * 1000
        ends.store.free(handle)
        with pytest.raises(PayloadLost):
            ends.reader.get(handle, by_then())
        assert ends.store.held_bytes == 0

    def test_a_question_without_an_answer_is_settled_without_a_read_too(
        self, ends: OverNixl
    ) -> None:
        handle = put(ends, b"x" * 1000)
        for _ in range(5):
            with pytest.raises(StageTimeout):
                ends.reader.get(handle, soon(0.0002))
        ends.store.free(handle)
        ends.reader.settle(by_then())
        assert ends.store.held_bytes == 0
        ends.reader.settle(by_then())

    def test_nothing_is_read_where_too_many_reads_have_no_known_end(self, ends: OverNixl) -> None:
        handle = put(ends, b"x")
        for _ in range(MAX_UNSETTLED):
            with pytest.raises(StageTimeout):
                ends.reader.get(handle, soon(-1))
        with pytest.raises(EngineError, match="not told the end of 64 reads"):
            ends.reader.get(handle, soon(-1))
        assert ends.reader.get(put(ends, b"y"), by_then()) == b"y"

    def test_a_store_that_is_closed_while_somebody_reads_keeps_its_memory(self) -> None:
        ends = OverNixl()
        handle = put(ends, b"kept")
        claim(ends, handle, "slow", 1)
        memory = ends.store._registered.memory
        ends.close()
        assert ends.store.held_bytes == 4096
        assert memory[:4].tobytes() == b"kept"


def test_what_the_landing_cannot_hold_is_refused(ends: OverNixl) -> None:
    small = NixlReader(next(names), secret=SECRET, max_bytes=8192)
    with pytest.raises(EngineError, match="no room for 10000 bytes"):
        small.get(put(ends, bytes(10_000)), by_then())
    assert small.get(put(ends, b"x" * 8000), by_then()) == b"x" * 8000
    small.close()


def test_memory_knows_its_address() -> None:
    registered = Registered(next(names), 8192)
    assert registered.address(4096) - registered.address(0) == 4096
    registered.close()
