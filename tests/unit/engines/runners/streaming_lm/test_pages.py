"""Pages of keys and values: nobody sees another's, nothing is lost, no call fails."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from duologue.core.errors import CapacityError
from duologue.engines.runners.streaming_lm.pages import (
    CopyPage,
    Effect,
    PageLimits,
    Pages,
    Shortened,
)

pytestmark = pytest.mark.torch  # for the folder: pages themselves need none

SLOTS = 4


def limits(pages: int = 12, **changes: int) -> PageLimits:
    sizes = {"page_frames": 4, "window": 16, "chunk": 8, "growth_frames": 4, "prefixes": 2}
    return PageLimits(pages=pages, **{**sizes, **changes})


class PagesMachine(RuleBasedStateMachine):
    """What is written is modelled as text: who wrote it, and at which position.

    Invariants: every position that a stream sees still holds what was written for it; no page is
    written to that another one sees; all pages are accounted for.
    """

    def __init__(self) -> None:
        super().__init__()
        self.limits = limits()
        self.pages = Pages(self.limits)
        self.memory: dict[tuple[int, int], str] = {}
        self.written: dict[int, dict[int, str]] = {}
        self.kept: dict[str, dict[int, str]] = {}
        self.first: dict[int, int] = {}
        self.pins: dict[int, int] = {}
        self.names = 0

    def perform(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case CopyPage(source, target):
                    for offset in range(self.limits.page_frames):
                        held = self.memory.get((source, offset), "")
                        self.memory[target, offset] = held
                case Shortened(slot, first):
                    assert first > self.first[slot]
                    assert first <= self.pages.end(slot)
                    self.first[slot] = first

    def write(self, slot: int, count: int) -> None:
        begin = self.pages.end(slot)
        self.perform(self.pages.extend(slot, count))
        table = self.pages.table(slot)
        others = [set(self.pages.table(other).values()) for other in self.written if other != slot]
        for position in range(begin, begin + count):
            page = table[position // self.limits.page_frames % self.limits.width]
            assert not any(page in other for other in others)
            self.names += 1
            text = f"{slot}@{position}#{self.names}"
            self.memory[page, position % self.limits.page_frames] = text
            self.written[slot][position] = text

    @precondition(lambda self: len(self.written) < SLOTS)
    @rule(frames=st.integers(1, 16), name=st.sampled_from(["a", "b", "c"]), pins=st.booleans())
    def join(self, frames: int, name: str, pins: bool) -> None:
        slot = next(each for each in range(SLOTS) if each not in self.written)
        try:
            there = self.pages.admit(slot, frames, name)
        except CapacityError:
            return
        self.first[slot] = 0
        self.pins[slot] = -(-frames // 4) if pins and frames <= 8 else 0
        if self.pins[slot]:
            self.pages.pin(slot, frames)
        self.written[slot] = {p: self.kept[name][p] for p in range(there)} if there else {}
        while (left := frames - self.pages.end(slot)) > 0:
            self.write(slot, min(left, self.limits.chunk))
        was_known = self.pages.knows(name)
        self.pages.keep(slot, name)
        if self.pages.knows(name) and not was_known:
            self.kept[name] = dict(self.written[slot])

    @precondition(lambda self: self.written)
    @rule(data=st.data(), count=st.integers(1, 8))
    def grow(self, data: st.DataObject, count: int) -> None:
        self.write(data.draw(st.sampled_from(sorted(self.written))), count)

    @precondition(lambda self: self.written)
    @rule(data=st.data(), back=st.integers(0, 6))
    def rewind(self, data: st.DataObject, back: int) -> None:
        slot = data.draw(st.sampled_from(sorted(self.written)))
        end = self.pages.end(slot)
        target = max(self.pages.kept_from(slot), end - back)
        if target > end:
            return
        self.pages.truncate(slot, target)
        self.written[slot] = {p: text for p, text in self.written[slot].items() if p < target}

    @precondition(lambda self: self.written and len(self.written) < SLOTS)
    @rule(data=st.data())
    def fork(self, data: st.DataObject) -> None:
        slot = data.draw(st.sampled_from(sorted(self.written)))
        target = next(each for each in range(SLOTS) if each not in self.written)
        self.pages.fork(slot, target)
        self.written[target] = dict(self.written[slot])
        self.first[target] = self.first[slot]
        self.pins[target] = self.pins[slot]

    @precondition(lambda self: self.written)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        slot = data.draw(st.sampled_from(sorted(self.written)))
        self.pages.release(slot)
        del self.written[slot]
        del self.pins[slot]

    @invariant()
    def everybody_sees_what_was_written(self) -> None:
        size = self.limits.page_frames
        for slot, texts in self.written.items():
            table, end = self.pages.table(slot), self.pages.end(slot)
            first = self.pages.first(slot, end)
            for place in range(first, end):
                page = table[place // size % self.limits.width]
                # What is pinned stands before the window, which has moved away from it.
                is_pinned = self.pins[slot] and place < first + self.pins[slot] * size
                position = place - first if is_pinned else place
                assert self.memory[page, place % size] == texts[position]

    @invariant()
    def a_pinned_beginning_is_seen(self) -> None:
        for slot, pages in self.pins.items():
            if slot in self.written and pages:
                held = self.pages.table(slot).values()
                assert len(held) >= min(pages, -(-self.pages.end(slot) // 4))

    @invariant()
    def no_table_holds_more_than_it_can(self) -> None:
        for slot in self.written:
            assert len(self.pages.table(slot)) <= self.limits.width

    def teardown(self) -> None:
        for slot in self.written:
            self.pages.release(slot)
        kept = self.limits.pages - self.pages.free
        assert kept <= 2 * self.limits.promised + 2


TestPages = PagesMachine.TestCase
TestPages.settings = settings(max_examples=60, stateful_step_count=30)


def test_all_pages_come_back_when_calls_end() -> None:
    pages = Pages(limits(prefixes=0))
    for _ in range(1000):
        pages.admit(0, 3)
        pages.extend(0, 7)
        pages.release(0)
    assert pages.free == 12


def test_a_window_slides_within_what_was_promised() -> None:
    pages = Pages(limits())
    pages.admit(0, 1)
    for _ in range(100):
        assert pages.extend(0, 1) == []
        assert len(pages.table(0)) <= 5
    assert pages.first(0, pages.end(0)) == 100 - 16 + 1


def test_who_would_take_what_was_promised_to_others_is_refused() -> None:
    pages = Pages(limits(pages=6))
    pages.admit(0, 4)
    pages.extend(0, 4)
    with pytest.raises(CapacityError, match="5 of 6 pages"):
        pages.admit(1, 12)
    pages.admit(1, 1)


def test_the_longest_window_is_shortened_when_pages_run_out() -> None:
    pages = Pages(limits(pages=6))
    pages.admit(0, 1)
    pages.admit(1, 1)
    for _ in range(16):
        assert pages.extend(0, 1) == []
    for _ in range(8):
        assert pages.extend(1, 1) == []
    assert pages.extend(1, 1) == [Shortened(0, 4)]
    assert pages.first(0, 16) == 4


def test_a_beginning_is_shared_until_somebody_writes() -> None:
    pages = Pages(limits())
    pages.admit(0, 6, "voice")
    pages.extend(0, 6)
    pages.keep(0, "voice")
    assert pages.admit(1, 6, "voice") == 6
    assert pages.table(1) == pages.table(0)
    (copy,) = pages.extend(1, 1)
    assert isinstance(copy, CopyPage)
    assert pages.table(1)[1] == copy.target != copy.source == pages.table(0)[1]
    assert pages.table(1)[0] == pages.table(0)[0]


def test_kept_beginnings_go_before_any_window_is_shortened() -> None:
    pages = Pages(limits(pages=6))
    pages.admit(0, 8)
    pages.extend(0, 8)
    pages.keep(0, "voice")
    assert pages.kept == 0
    pages.release(0)
    assert pages.free == 4
    assert pages.kept == 2
    pages.admit(1, 8)
    for _ in range(17):
        assert pages.extend(1, 1) == []
    assert not pages.knows("voice")


def test_only_so_many_beginnings_are_kept() -> None:
    pages = Pages(limits())
    for name in ("a", "b", "c"):
        pages.admit(0, 1)
        pages.extend(0, 1)
        pages.keep(0, name)
        pages.release(0)
    assert [pages.knows(name) for name in ("a", "b", "c")] == [False, True, True]


def test_a_pinned_beginning_moves_along_before_the_window() -> None:
    pages = Pages(limits())
    pages.admit(0, 6)
    pages.pin(0, 6)
    pages.extend(0, 6)
    beginning = [pages.table(0)[place] for place in (0, 1)]
    for _ in range(60):
        pages.extend(0, 1)
        end = pages.end(0)
        first = pages.first(0, end - 1)
        seen = end - first
        assert seen <= 16
        places = (first // 4 % limits().width, (first // 4 + 1) % limits().width)
        assert [pages.table(0)[place] for place in places] == beginning
    assert seen > 16 - 2 * 4
