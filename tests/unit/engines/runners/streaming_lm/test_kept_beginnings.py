"""Who begins as somebody else did says what one says that has read it all, and reads nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duologue.engines.models.moshi_lm.sampling import Taste
from duologue.engines.runners.streaming_lm.engine import FrameEngine
from duologue.engines.runners.streaming_lm.opening import Opening
from duologue.engines.runners.streaming_lm.spoken_frame import SpokenFrame
from tests.unit.engines.runners.streaming_lm.tiny_network import engine, persona, speech

pytestmark = pytest.mark.torch


def begin(one: FrameEngine, seed: int, name: str, tokens: int = 9, *, pinned: bool = False) -> int:
    how = Opening(persona(tokens), taste=Taste(), seed=seed, name=name, pinned=pinned)
    slot = one.open(how)
    while not one.is_live(slot):
        one.prefill()
    return slot


def talk(one: FrameEngine, slot: int, frames: int = 6) -> list[tuple[object, ...]]:
    said: list[SpokenFrame] = [one.step([slot], [pcm])[0] for pcm in speech(frames, seed=9)]
    return [(each.text, each.said, each.heard, each.pcm.tobytes()) for each in said]


@settings(max_examples=8, deadline=None)
@given(seed=st.integers(1, 1000), tokens=st.integers(1, 9))
def test_it_says_the_same_as_one_that_has_read_everything(seed: int, tokens: int) -> None:
    kept, fresh = engine(), engine()
    first = begin(kept, 7, "kind", tokens)
    talk(kept, first, 2)
    second = begin(kept, seed, "kind", tokens)
    alone = begin(fresh, seed, "", tokens)
    assert talk(kept, second) == talk(fresh, alone)


@pytest.mark.parametrize("pinned", [False, True])
def test_nothing_is_read_for_it(pinned: bool) -> None:
    one = engine()
    begin(one, 1, "kind", 4, pinned=pinned)
    how = Opening(persona(4), seed=2, name="kind", pinned=pinned)
    slot = one.open(how)
    assert one.pages.end(slot) == how.positions
    assert one.waiting == 1
    assert one.prefill(one.limits.chunks[0]) == [slot]
    assert one.pages.end(slot) == how.positions
    assert one.waiting == 0
    assert [frame.frame for frame in one.step([slot], speech(1, 1))] == [0]


def test_it_does_not_wait_for_what_others_have_to_read() -> None:
    one = engine()
    begin(one, 1, "kind")
    reads = one.open(Opening(persona(9), seed=2))
    begins = one.open(Opening(persona(9), seed=3, name="kind"))
    assert one.prefill() == [begins]
    assert not one.is_live(reads)


def test_what_was_kept_may_be_dropped_before_it_begins() -> None:
    one, fresh = engine(pages=30), engine()
    one.close(begin(one, 1, "kind"))
    slot = one.open(Opening(persona(9), seed=5, name="kind"))
    for number in range(40):  # more than are kept
        one.close(begin(one, number, f"other {number}", 1))
    assert not one.pages.knows("kind")
    while not one.is_live(slot):
        one.prefill()
    assert talk(one, slot) == talk(fresh, begin(fresh, 5, ""))


def test_one_that_is_closed_before_it_begins_leaves_nothing() -> None:
    one = engine()
    first = begin(one, 1, "kind")
    one.close(first)
    free = one.pages.free
    one.close(one.open(Opening(persona(9), name="kind")))
    assert (one.pages.free, one.waiting, one.streams) == (free, 0, 0)


def test_one_that_was_lost_goes_through_its_log_after_a_beginning_that_is_kept() -> None:
    one, fresh = engine(), engine()
    lost = begin(one, 5, "kind", 4)
    talk(one, lost, 3)
    log = one.log_of(lost).copy()
    one.close(lost)
    how = Opening(persona(4), taste=Taste(), seed=6)
    slots = [
        each.open(how_, log.copy())
        for each, how_ in ((one, replace(how, name="kind")), (fresh, how))
    ]
    for each, slot in zip((one, fresh), slots, strict=True):
        while not each.is_live(slot):
            each.prefill()
        assert each.frames(slot) == 3
    assert [t[:3] for t in talk(one, slots[0])] == [t[:3] for t in talk(fresh, slots[1])]
