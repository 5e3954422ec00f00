from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from duologue.engines.transport.extents import ALIGNMENT, Extents

SIZE = 16 * ALIGNMENT


def test_the_lowest_that_fits_is_taken() -> None:
    extents = Extents(SIZE)
    first = extents.take(ALIGNMENT)
    assert first == 0
    assert extents.take(1) == ALIGNMENT
    extents.give_back(0, ALIGNMENT)
    assert extents.take(2 * ALIGNMENT) == 2 * ALIGNMENT
    assert extents.take(ALIGNMENT) == 0


def test_what_is_too_long_is_refused_and_nothing_always_fits() -> None:
    extents = Extents(SIZE)
    assert extents.take(SIZE + 1) is None
    assert extents.take(SIZE) == 0
    assert extents.take(1) is None
    assert extents.take(0) == 0


def test_memory_of_no_size_has_room_for_nothing() -> None:
    assert Extents(0).take(1) is None


class ExtentsModel(RuleBasedStateMachine):
    """No two runs overlap, and what is given back is one piece again."""

    def __init__(self) -> None:
        super().__init__()
        self.extents = Extents(SIZE)
        self.taken: list[tuple[int, int]] = []

    @rule(size=st.integers(0, SIZE))
    def take(self, size: int) -> None:
        start = self.extents.take(size)
        if start is not None and size:
            self.taken.append((start, size))

    @precondition(lambda self: self.taken)
    @rule(data=st.data())
    def give_back(self, data: st.DataObject) -> None:
        index = data.draw(st.integers(0, len(self.taken) - 1))
        self.extents.give_back(*self.taken.pop(index))

    @invariant()
    def runs_do_not_overlap_and_lie_inside(self) -> None:
        end = 0
        for start, size in sorted(self.taken):
            assert start >= end
            assert start % ALIGNMENT == 0
            end = start + size
        assert end <= SIZE

    @invariant()
    def with_nothing_taken_all_is_one_piece(self) -> None:
        if not self.taken:
            assert self.extents.taken_bytes == 0
            assert self.extents.take(SIZE) == 0
            self.extents.give_back(0, SIZE)


TestExtentsModel = ExtentsModel.TestCase
TestExtentsModel.settings = settings(max_examples=max(1, settings().max_examples // 4))
