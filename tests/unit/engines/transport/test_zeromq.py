"""Over TCP on this machine; what a network does to it is in the model of ``tests/state``."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from duologue.core.clock import SystemClock
from duologue.core.errors import StageTimeout
from duologue.engines.transport.port import Handle, PayloadLost
from duologue.engines.transport.questions import HIGH_WATER_MARK, Answerer, Asker
from duologue.engines.transport.zeromq import ZeromqReader, ZeromqStore
from tests.unit.engines.transport.transport_contract import (
    Ends,
    TransportContract,
    by_then,
    put,
)

SECRET = b"a secret of a cluster"


def soon(seconds: float = 0.2) -> float:
    return SystemClock().now() + seconds


class OverTcp:
    """A store that dies comes back at the same address, as a worker that is started again does."""

    def __init__(self) -> None:
        self.lives = 0
        self.port = 0
        self.writer_dies()
        self.reader = ZeromqReader(secret=SECRET)

    def writer_dies(self) -> None:
        if self.lives:
            self.store.close()
        self.lives += 1
        self.store = ZeromqStore(
            "127.0.0.1",
            self.port,
            secret=SECRET,
            max_bytes=2**20,
            first_generation=self.lives << 32,
        )
        self.port = int(self.store.place.rpartition(":")[2])

    def reader_dies(self) -> None:
        self.reader.close()
        self.reader = ZeromqReader(secret=SECRET)

    def close(self) -> None:
        self.store.close()
        self.reader.close()


class TestZeromq(TransportContract):
    @pytest.fixture
    def ends(self) -> Iterator[Ends]:
        ends = OverTcp()
        yield ends
        ends.close()

    def test_many_read_the_same(self, ends: Ends) -> None:
        handle = put(ends, b"for all")
        readers = [ZeromqReader(secret=SECRET) for _ in range(4)]
        assert [each.get(handle, by_then()) for each in readers] == [b"for all"] * 4
        for each in readers:
            each.close()

    def test_one_reader_reads_from_several_stores(self, ends: Ends) -> None:
        other = ZeromqStore("127.0.0.1", 0, secret=SECRET, max_bytes=100, first_generation=1)
        there = other.put(b"there")
        assert there is not None
        assert ends.reader.get(put(ends, b"here"), by_then()) == b"here"
        assert ends.reader.get(there, by_then()) == b"there"
        other.close()


class TestDeadlines:
    def test_a_store_that_is_not_there_costs_no_more_than_the_deadline(self) -> None:
        reader = ZeromqReader(secret=SECRET)
        with socket.create_server(("127.0.0.1", 0)) as deaf:
            place = f"tcp://127.0.0.1:{deaf.getsockname()[1]}"
            begun = SystemClock().now()
            with pytest.raises(StageTimeout, match="did not answer in time"):
                reader.get(Handle(place, 0, 1, 5), soon(0.1))
            assert SystemClock().now() - begun >= 0.1
        reader.close()

    def test_a_deadline_that_has_passed_asks_nobody(self) -> None:
        ends = OverTcp()
        with pytest.raises(StageTimeout):
            ends.reader.get(put(ends, b"x"), soon(-1))
        ends.close()

    def test_reads_that_were_given_up_leave_nothing_to_the_next(self) -> None:
        ends = OverTcp()
        first, second = put(ends, b"first"), put(ends, b"2nd")
        for _ in range(3 * HIGH_WATER_MARK):
            with pytest.raises(StageTimeout):
                ends.reader.get(first, soon(0.0001))
        assert ends.reader.get(second, by_then()) == b"2nd"
        assert ends.reader.get(first, by_then()) == b"first"
        ends.close()

    def test_a_store_that_comes_back_is_found_and_has_nothing_of_before(self) -> None:
        ends = OverTcp()
        old = put(ends, b"old")
        assert ends.reader.get(old, by_then()) == b"old"
        ends.writer_dies()
        with pytest.raises(PayloadLost):
            ends.reader.get(old, by_then())
        assert ends.reader.get(put(ends, b"new"), by_then()) == b"new"
        ends.close()


class TestNonsense:
    def test_places_and_questions_that_are_none_do_no_harm(self) -> None:
        ends = OverTcp()
        asker = Asker(SECRET, SystemClock())
        for words in (b"", b"\xc1", b"x" * 1000):
            with pytest.raises(StageTimeout):
                asker.ask(ends.store.place, words, soon(0.05))
        assert ends.reader.get(put(ends, b"x"), by_then()) == b"x"
        asker.close()
        ends.close()

    @pytest.mark.parametrize(
        "answer", [[], [b"1"], [b"1", b"x", b"x"], [b"?", b"x"], [b"1", b"xx"]]
    )
    def test_an_answer_that_is_none_loses_the_payload_and_no_other(
        self, answer: list[bytes]
    ) -> None:
        ends = OverTcp()
        liar = Answerer("127.0.0.1", 0, SECRET, lambda asked: answer)
        liar.start()
        with pytest.raises(PayloadLost):
            ends.reader.get(Handle(liar.place, 0, 1, 1), by_then())
        assert ends.reader.get(put(ends, b"x"), by_then()) == b"x"
        liar.close()
        ends.close()

    @pytest.mark.parametrize(
        "place", ["", "here", "tcp://", "tcp://127.0.0.1:port", "ipc:///tmp/there", "inproc://here"]
    )
    def test_places_that_are_none_are_refused(self, place: str) -> None:
        reader = ZeromqReader(secret=SECRET)
        with pytest.raises(PayloadLost):
            reader.get(Handle(place, 0, 1, 1), soon())
        reader.close()
