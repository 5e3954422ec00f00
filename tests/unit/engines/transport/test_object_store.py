from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fakes.object_store import ObjectStore
from tests.unit.engines.transport.transport_contract import (
    Ends,
    TransportContract,
    by_then,
    put,
)


class InProcess:
    """One process has both ends, so they die together, and nobody is left with a handle."""

    def __init__(self) -> None:
        self.store = self.reader = ObjectStore(max_bytes=2**20)

    def writer_dies(self) -> None:
        self.store.close()

    def reader_dies(self) -> None:
        pass

    def close(self) -> None:
        self.store.close()


class TestObjectStore(TransportContract):
    @pytest.fixture
    def ends(self) -> Iterator[Ends]:
        ends = InProcess()
        yield ends
        ends.close()

    def test_nothing_is_copied(self, ends: Ends) -> None:
        data = bytes(1_000)
        assert ends.reader.get(put(ends, data), by_then()) is data
