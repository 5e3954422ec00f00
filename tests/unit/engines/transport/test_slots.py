from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from duologue.engines.transport.port import Handle
from duologue.engines.transport.slots import MAX_CLAIMS, Slots


def taken(slots: Slots, size_bytes: int = 10) -> Handle:
    handle = slots.add(size_bytes)
    assert handle is not None
    return handle


def test_a_slot_that_is_used_again_has_another_generation() -> None:
    slots = Slots("x", count=1, first_generation=5)
    first = taken(slots)
    assert (first.slot, first.generation) == (0, 5)
    assert slots.add(1) is None
    assert slots.free(first) == [first]
    second = taken(slots)
    assert (second.slot, second.generation) == (0, 6)
    assert slots.free(first) == []
    assert slots.holds(second)
    assert not slots.holds(first)


def test_what_is_being_read_is_freed_when_it_has_been() -> None:
    slots = Slots("x", count=2)
    handle = taken(slots)
    assert slots.claim(handle, "a", 1)
    assert slots.free(handle) == []
    assert not slots.holds(handle)
    assert not slots.claim(handle, "b", 1)
    assert slots.claim(handle, "a", 1)  # the answer to its first question may have been lost
    assert slots.settle(handle, "b", 1) == []
    assert slots.settle(handle, "a", 1) == [handle]
    assert slots.settle(handle, "a", 1) == []


def test_a_question_that_comes_after_the_end_of_its_read_begins_nothing() -> None:
    slots = Slots("x", count=1)
    handle = taken(slots)
    slots.settle(handle, "a", 1)
    assert not slots.claim(handle, "a", 1)
    assert slots.claim(handle, "a", 2)


def test_a_dead_reader_reads_nothing() -> None:
    slots = Slots("x", count=2)
    first, second = taken(slots), taken(slots)
    for handle in (first, second):
        assert slots.claim(handle, "a", 1)
    assert slots.claim(second, "b", 1)
    slots.free(first)
    slots.free(second)
    assert slots.reader_died("a") == [first]
    assert slots.settle(second, "b", 1) == [second]


def test_claims_are_bounded() -> None:
    slots = Slots("x", count=1)
    handle = taken(slots)
    claims = [slots.claim(handle, "a", number) for number in range(2 * MAX_CLAIMS)]
    assert claims == [True] * MAX_CLAIMS + [False] * MAX_CLAIMS
    for number in range(2 * MAX_CLAIMS):
        slots.settle(handle, "a", number)
    assert not slots.claim(handle, "a", 10**6)
    assert slots.free(handle) == [handle]


def test_all_can_be_freed_at_once() -> None:
    slots = Slots("x", count=3)
    first, second = taken(slots), taken(slots)
    slots.claim(second, "a", 1)
    assert slots.free_all() == [first]
    assert len(slots) == 1


Message = tuple[str, Handle, str, int]


class SlotsModel(RuleBasedStateMachine):
    """Readers' messages are lost, delayed and doubled; memory is never used while one reads."""

    def __init__(self) -> None:
        super().__init__()
        self.slots = Slots("x", count=4)
        self.in_use: set[Handle] = set()
        self.reading: set[tuple[Handle, str, int]] = set()
        self.over: set[tuple[Handle, str, int]] = set()
        self.network: list[Message] = []
        self.numbers = 0

    @rule()
    def a_payload_is_put(self) -> None:
        handle = self.slots.add(1)
        if handle is None:
            assert len(self.in_use) == 4
            return
        assert handle not in self.in_use
        assert handle.slot not in {each.slot for each in self.in_use}
        self.in_use.add(handle)

    @precondition(lambda self: self.in_use)
    @rule(data=st.data(), reader=st.sampled_from("ab"), times=st.integers(0, 2))
    def a_reader_asks(self, data: st.DataObject, reader: str, times: int) -> None:
        handle = data.draw(st.sampled_from(sorted(self.in_use, key=lambda each: each.generation)))
        self.numbers += 1
        self.network += [("claim", handle, reader, self.numbers)] * times

    @precondition(lambda self: self.reading)
    @rule(data=st.data(), times=st.integers(0, 2))
    def a_reader_is_done(self, data: st.DataObject, times: int) -> None:
        read = data.draw(st.sampled_from(sorted(self.reading, key=lambda each: each[2])))
        self.reading.discard(read)
        self.over.add(read)
        self.network += [("settle", *read)] * times

    @precondition(lambda self: self.in_use)
    @rule(data=st.data(), times=st.integers(0, 2))
    def a_payload_is_freed(self, data: st.DataObject, times: int) -> None:
        handle = data.draw(st.sampled_from(sorted(self.in_use, key=lambda each: each.generation)))
        self.network += [("free", handle, "", 0)] * times

    @precondition(lambda self: self.network)
    @rule(data=st.data())
    def a_message_arrives(self, data: st.DataObject) -> None:
        index = data.draw(st.integers(0, len(self.network) - 1))
        kind, handle, reader, number = self.network.pop(index)
        read = (handle, reader, number)
        match kind:
            case "claim":
                if self.slots.claim(handle, reader, number):
                    assert handle in self.in_use
                    if read not in self.over:
                        self.reading.add(read)
            case "settle":
                self.vacate(self.slots.settle(handle, reader, number))
            case _:
                self.vacate(self.slots.free(handle))

    @rule(reader=st.sampled_from("ab"))
    def one_of_them_dies(self, reader: str) -> None:
        self.a_reader_dies(reader)

    def a_reader_dies(self, reader: str) -> None:
        self.network = [each for each in self.network if each[2] != reader]
        self.reading = {each for each in self.reading if each[1] != reader}
        self.vacate(self.slots.reader_died(reader))

    @invariant()
    def nothing_is_forgotten(self) -> None:
        assert len(self.slots) == len(self.in_use)

    def vacate(self, handles: list[Handle]) -> None:
        for handle in handles:
            self.in_use.remove(handle)
            assert not any(read[0] == handle for read in self.reading)

    def teardown(self) -> None:
        """Once all readers are gone everything can be had back."""
        self.vacate(self.slots.free_all())
        for reader in "ab":
            self.a_reader_dies(reader)
        assert self.in_use == set()


TestSlotsModel = SlotsModel.TestCase
TestSlotsModel.settings = settings(max_examples=max(1, settings().max_examples // 4))
