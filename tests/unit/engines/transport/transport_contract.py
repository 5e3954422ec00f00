"""What every transport promises, whatever moves the bytes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from duologue.core.clock import SystemClock
from duologue.core.errors import StageTimeout
from duologue.engines.transport.port import Handle, PayloadLost, Reader, Store

GENEROUS_S = 15.0
"""For a read that must succeed, on a machine that has other things to do."""


class Ends(Protocol):
    """A transport with both its ends, as a test wants them."""

    store: Store
    reader: Reader

    def writer_dies(self) -> None:
        """Replace the store as after ``kill -9``: it closed nothing."""
        ...

    def reader_dies(self) -> None:
        """Replace the reader likewise."""
        ...

    def close(self) -> None: ...


def by_then() -> float:
    return SystemClock().now() + GENEROUS_S


def payload(number: int, size: int) -> bytes:
    """So many bytes, which tell one payload from another at any place."""
    return (number.to_bytes(4, "little") * (size // 4 + 1))[:size]


def put(ends: Ends, data: bytes) -> Handle:
    handle = ends.store.put(data)
    assert handle is not None, "there must be room for this"
    return handle


class TransportContract:
    """Inherit, and provide the fixture ``ends``, with room for a megabyte."""

    @pytest.mark.parametrize("size", [0, 1, 4095, 4096, 65_537, 700_001])
    def test_what_is_put_is_got(self, ends: Ends, size: int) -> None:
        data = payload(7, size)
        handle = put(ends, data)
        assert handle.size_bytes == size
        assert ends.reader.get(handle, by_then()) == data

    def test_a_view_of_memory_is_a_payload_too_and_may_change_afterwards(self, ends: Ends) -> None:
        data = bytearray(b"before")
        handle = put(ends, memoryview(bytes(data)))  # type: ignore[arg-type]
        data[:] = b"after!"
        assert ends.reader.get(handle, by_then()) == b"before"

    def test_a_payload_may_be_read_again_until_it_is_freed(self, ends: Ends) -> None:
        handle = put(ends, b"one")
        assert [ends.reader.get(handle, by_then()) for _ in range(3)] == [b"one"] * 3
        ends.store.free(handle)
        with pytest.raises(PayloadLost, match="3 bytes"):
            ends.reader.get(handle, by_then())

    def test_freeing_twice_frees_nothing_of_somebody_else(self, ends: Ends) -> None:
        first = put(ends, b"first")
        ends.store.free(first)
        second = put(ends, b"other")
        ends.store.free(first)
        assert ends.reader.get(second, by_then()) == b"other"
        with pytest.raises(PayloadLost):
            ends.reader.get(first, by_then())

    def test_there_is_an_end_to_what_is_held_and_then_room_again(self, ends: Ends) -> None:
        handles = []
        while (handle := ends.store.put(bytes(100_000))) is not None:
            handles.append(handle)
            assert len(handles) < 1_000, "a store must be full at some time"
        assert len(handles) >= 5
        held = ends.store.held_bytes
        ends.store.free(handles.pop())
        assert ends.store.held_bytes < held
        put(ends, bytes(100_000))

    def test_small_payloads_are_counted_too(self, ends: Ends) -> None:
        count = 0
        while ends.store.put(b"") is not None:
            count += 1
            assert count < 100_000, "a store must be full at some time"

    def test_payloads_of_all_sizes_lie_side_by_side(self, ends: Ends) -> None:
        many = {put(ends, payload(n, n * 997)): payload(n, n * 997) for n in range(30)}
        for handle, data in reversed(many.items()):
            assert ends.reader.get(handle, by_then()) == data
            ends.store.free(handle)
        assert ends.store.held_bytes == 0

    def test_a_reader_that_died_leaves_the_payload_to_another(self, ends: Ends) -> None:
        handle = put(ends, b"still here")
        ends.reader.get(handle, by_then())
        ends.reader_dies()
        assert ends.reader.get(handle, by_then()) == b"still here"

    def test_handles_that_nobody_gave_out_are_refused(self, ends: Ends) -> None:
        handle = put(ends, b"mine")
        forged = [
            Handle(handle.place, handle.slot + 1, handle.generation, 4),
            Handle(handle.place, handle.slot, handle.generation + 1, 4),
            Handle(handle.place, 10**6, handle.generation, 4),
            Handle(handle.place, -1, handle.generation, 4),
            Handle(handle.place, handle.slot, 0, 4),
        ]
        for each in forged:
            with pytest.raises(PayloadLost):
                ends.reader.get(each, by_then())

    def test_after_the_close_there_is_nothing(self, ends: Ends) -> None:
        handle = put(ends, b"gone")
        ends.store.close()
        with pytest.raises((PayloadLost, StageTimeout)):
            ends.reader.get(handle, SystemClock().now() + 0.05)


class TransportModel(RuleBasedStateMachine):
    """Handles and releases are lost, delayed, doubled, and both ends die, in any order.

    A subclass says how the ends are made. Payloads that the model has lost sight of stay where
    they are until their writer dies, and count as held.
    """

    make: Callable[[], Ends]

    def __init__(self) -> None:
        super().__init__()
        self.ends = type(self).make()
        self.number = 0
        self.live: dict[Handle, bytes] = {}
        self.on_the_way: list[Handle] = []
        self.releases: list[Handle] = []
        self.dead: list[Handle] = []

    def teardown(self) -> None:
        self.ends.close()

    @rule(size=st.sampled_from([0, 1, 4096, 5000, 300_000]), times=st.integers(0, 2))
    def a_payload_is_put(self, size: int, times: int) -> None:
        """``times``: how often its handle arrives; 0: it is lost on the way."""
        self.number += 1
        data = payload(self.number, size)
        handle = self.ends.store.put(data)
        if handle is None:
            assert self.live, "an empty store has room"
            return
        assert handle not in self.live
        assert handle not in self.dead
        self.live[handle] = data
        self.on_the_way += [handle] * times

    @precondition(lambda self: self.on_the_way)
    @rule(data=st.data(), keeps=st.booleans(), releases=st.integers(0, 2))
    def a_handle_arrives(self, data: st.DataObject, keeps: bool, releases: int) -> None:
        """In any order; the reader says any number of times that it has read."""
        index = data.draw(st.integers(0, len(self.on_the_way) - 1))
        handle = self.on_the_way[index] if keeps else self.on_the_way.pop(index)
        self.check(handle)
        self.releases += [handle] * releases

    @precondition(lambda self: self.releases)
    @rule(data=st.data())
    def a_release_arrives(self, data: st.DataObject) -> None:
        index = data.draw(st.integers(0, len(self.releases) - 1))
        handle = self.releases.pop(index)
        self.ends.store.free(handle)
        if self.live.pop(handle, None) is not None:
            self.dead.append(handle)

    @precondition(lambda self: self.dead)
    @rule(data=st.data())
    def a_handle_comes_far_too_late(self, data: st.DataObject) -> None:
        self.check(data.draw(st.sampled_from(self.dead)))

    @rule()
    def the_reader_dies(self) -> None:
        self.ends.reader_dies()

    @rule()
    def the_writer_dies(self) -> None:
        self.ends.writer_dies()
        self.dead += self.live
        self.live.clear()

    @invariant()
    def what_is_held_is_what_was_not_freed(self) -> None:
        held = self.ends.store.held_bytes
        assert held >= sum(map(len, self.live.values()))
        if not self.live:
            assert held == 0

    def check(self, handle: Handle) -> None:
        """The payload or an error, and nothing else."""
        expected = self.live.get(handle)
        if expected is not None:
            assert self.ends.reader.get(handle, by_then()) == expected
            return
        with suppress(PayloadLost):
            got = self.ends.reader.get(handle, by_then())
            raise AssertionError(f"{len(got)} bytes of a payload that was freed")
