"""Streams in one batch: each as if it were alone."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from duologue.core.errors import CapacityError
from duologue.engines.models.moshi_lm.sampling import GREEDY
from duologue.engines.runners.streaming_lm.engine import FrameEngine
from duologue.engines.runners.streaming_lm.opening import Opening
from duologue.engines.runners.streaming_lm.spoken_frame import SpokenFrame
from tests.unit.engines.runners.streaming_lm.tiny_network import (
    CONFIG,
    WINDOW,
    engine,
    network,
    opening,
    persona,
    speech,
)

pytestmark = pytest.mark.torch


def start(one: FrameEngine, how: Opening) -> int:
    slot = one.open(how)
    while not one.is_live(slot):
        one.prefill()
    return slot


def talk(one: FrameEngine, slot: int, frames: int, seed: int) -> list[SpokenFrame]:
    return [one.step([slot], [pcm])[0] for pcm in speech(frames, seed)]


def same(some: list[SpokenFrame], others: list[SpokenFrame]) -> bool:
    return len(some) == len(others) and all(
        (a.frame, a.text, a.said, a.heard) == (b.frame, b.text, b.said, b.heard)
        and np.array_equal(a.pcm, b.pcm)
        for a, b in zip(some, others, strict=True)
    )


def tokens(spoken: list[SpokenFrame]) -> list[tuple[int, ...]]:
    return [(each.text, *each.said) for each in spoken]


def test_a_stream_among_others_is_as_if_alone_bit_for_bit() -> None:
    alone = engine()
    slot = start(alone, opening(seed=7, prompt=persona()))
    wanted = talk(alone, slot, 2 * WINDOW, seed=1)

    busy = engine()
    slot = start(busy, opening(seed=7, prompt=persona()))
    others = [start(busy, opening(seed=8 + n)) for n in range(3)]
    got = []
    for tick, pcm in enumerate(speech(2 * WINDOW, 1)):
        # Others take part now and then, leave, and come again.
        taking_part = [each for n, each in enumerate(others) if (tick + n) % 3]
        if tick == 10:
            busy.close(others.pop())
            others.append(start(busy, opening(seed=30, prompt=persona(4))))
            taking_part = []
        noise = speech(len(taking_part), 100 + tick)
        got.append(busy.step([slot, *taking_part], [pcm, *noise])[0])
    assert same(got, wanted)


def test_tokens_do_not_depend_on_the_bucket() -> None:
    results = []
    for buckets in ((1, 2, 4), (4,)):
        one = engine(buckets=buckets)
        slot = start(one, opening(seed=5, taste=GREEDY))
        results.append(tokens(talk(one, slot, WINDOW, seed=2)))
    assert results[0] == results[1]


def test_a_prefill_is_what_the_steps_would_have_been() -> None:
    one = engine()
    slot = start(one, opening(prompt=persona(), taste=GREEDY))
    spoken = talk(one, slot, WINDOW + 9, seed=3)
    again = one.open(opening(prompt=persona(), taste=GREEDY), one.log_of(slot))
    while not one.is_live(again):
        one.prefill(most=4)
    assert one.frames(again) == len(spoken)
    went_on = one.step([slot, again], speech(1, 4) * 2)
    assert went_on[0].text == went_on[1].text
    # The late codes were given; from the next step on it says what the first one says.
    assert went_on[0].said[0] == went_on[1].said[0]


@pytest.mark.parametrize("frames", [5, WINDOW + 9])
def test_chunks_do_not_matter_to_a_prefill(frames: int) -> None:
    results = []
    for most in (4, None):
        one = engine()
        slot = one.open(opening(prompt=persona(frames), taste=GREEDY))
        while not one.is_live(slot):
            one.prefill(most)
        results.append(tokens(talk(one, slot, 6, seed=3)))
    assert results[0] == results[1]


def test_taken_back_it_has_said_nothing_and_heard_everything() -> None:
    one = engine()
    slot = start(one, opening(seed=5))
    spoken = talk(one, slot, 12, seed=6)
    one.rewind(slot, 8)
    assert not one.is_live(slot)
    assert one.prefill() == [slot]
    log, base = one.log_of(slot), one.log_of(slot).end - 12
    for frame in range(12):
        kept = log.frame(base + frame)
        silent = (CONFIG.text_padding, CONFIG.silence)
        wanted = silent if frame >= 8 else (spoken[frame].text, spoken[frame].said)
        assert (kept.text, kept.said) == wanted
        assert kept.heard == spoken[frame].heard
    assert one.step([slot], speech(1, 9))[0].frame == 12


def test_taken_back_it_is_what_it_would_be_had_it_been_silent() -> None:
    one = engine()
    slot = start(one, opening(taste=GREEDY))
    talk(one, slot, 9, seed=6)
    one.rewind(slot, 5)
    one.prefill()
    again = one.open(opening(taste=GREEDY), one.log_of(slot))
    one.prefill()
    got = one.step([slot, again], speech(1, 9) * 2)
    assert (got[0].text, got[0].said) == (got[1].text, got[1].said)


def test_a_fork_goes_on_by_itself() -> None:
    one = engine()
    slot = start(one, opening(seed=5, taste=GREEDY))
    talk(one, slot, 10, seed=6)
    fork = one.fork(slot, seed=5)
    pcm = speech(8, seed=7)
    both = [one.step([slot, fork], [each, each]) for each in pcm]
    assert [a.said for a, _ in both] == [b.said for _, b in both]
    other = speech(8, seed=8)
    apart = [one.step([slot, fork], list(pair)) for pair in zip(pcm, other, strict=True)]
    assert [a.heard for a, _ in apart] != [b.heard for _, b in apart]


def test_a_shared_beginning_changes_nothing() -> None:
    results = []
    for name in ("", "voice"):
        one = engine()
        opened = []
        for seed in (1, 2):
            how = Opening(persona(), taste=GREEDY, seed=seed, name=name)
            opened.append(start(one, how))
            talk(one, opened[-1], 3, seed=seed)
        results.append([tokens(talk(one, each, 5, seed=9)) for each in opened])
    assert results[0] == results[1]


def test_embeddings_of_a_voice_are_taken_as_they_are() -> None:
    rows = persona().rows
    summed = [network().weights.embeddings[0] * 0 for _ in rows]
    one = engine()
    slot = start(one, Opening(persona(), taste=GREEDY))
    wanted = tokens(talk(one, slot, 5, seed=3))

    from duologue.engines.models.moshi_lm import temporal
    from duologue.engines.models.moshi_lm.prompt import Prompt

    summed = temporal.embed(network().weights, torch.tensor(rows[:-3], dtype=torch.int32))
    again = start(one, Opening(Prompt(rows[-3:], persona().last), voice=summed, taste=GREEDY))
    assert tokens(talk(one, again, 5, seed=3)) == wanted


def test_who_finds_no_place_is_told_so_and_nobody_else_suffers() -> None:
    one = engine(slots=2, buckets=(2,))
    slots = [start(one, opening(seed=n)) for n in range(2)]
    with pytest.raises(CapacityError, match="all 2 places"):
        one.open(opening())
    one.close(slots[0])
    assert start(one, opening()) == slots[0]


def test_calls_that_end_leave_nothing_behind() -> None:
    one = engine()
    free = one.pages.free
    for seed in range(20):
        slot = start(one, opening(seed=seed))
        talk(one, slot, 1, seed=seed)
        one.close(slot)
    assert one.pages.free == free
    assert one.streams == 0


def test_windows_become_shorter_and_no_call_ends() -> None:
    one = engine(pages=14)
    slots = [start(one, opening(seed=n)) for n in range(3)]
    for tick in range(WINDOW + 4):
        one.step(slots, speech(3, tick))
    assert one.shortened
    assert all(one.frames(slot) == WINDOW + 4 for slot in slots)


def test_a_pinned_persona_stays_where_attention_finds_it() -> None:
    one = engine()
    slot = start(one, Opening(persona(4), taste=GREEDY, pinned=True))
    pool, places = one._step.pool, one.pages.table(slot)
    before = [pool[:, places[place], :, :, 0].clone() for place in (0, 1)]
    talk(one, slot, 3 * WINDOW, seed=5)
    end = one.pages.end(slot)
    first = one.pages.first(slot, end - 1)
    assert WINDOW - 8 <= end - first <= WINDOW
    width = one.limits.pages.width
    for number, kept in enumerate(before):
        page = int(one._step.table[slot, (first // 4 + number) % width])
        assert torch.equal(pool[:, page, :, :, 0], kept)
    one.rewind(slot, one.frames(slot) - 3)
    assert one.prefill() == [slot]
    assert one.step([slot], speech(1, 9))[0].frame == 3 * WINDOW


def test_a_seed_says_the_same_again_and_a_taste_changes_it_from_the_next_frame_on() -> None:
    def call(greedy_from: int) -> list[tuple[int, ...]]:
        one = engine()
        slot = start(one, opening(seed=5))
        said = []
        for number, pcm in enumerate(speech(16, seed=2)):
            if number == greedy_from:
                one.draw_by(slot, GREEDY)
            said += tokens(one.step([slot], [pcm]))
        return said

    drawn, again, greedy = call(99), call(99), call(6)
    assert drawn == again
    # What sounds in a frame was chosen in the one before.
    assert greedy[:6] == drawn[:6]
    assert greedy[7:] != drawn[7:]


@pytest.mark.parametrize("pages", [60, 16])
def test_the_device_knows_where_every_page_is_also_when_pages_run_out(pages: int) -> None:
    one = engine(pages=pages)
    slots = [start(one, Opening(persona(4), taste=GREEDY, seed=n, pinned=n < 2)) for n in range(3)]
    for tick in range(2 * WINDOW):
        one.step(slots, speech(3, tick))
        # What a row saw was its own until the end of the step, whoever needed pages in it.
        for slot, first, position in one._frames[4].places.values[:3]:
            assert (first, position) == (one.pages.first(slot, position), one.pages.end(slot) - 1)
        if tick == WINDOW:
            one.close(slots[2])
            slots[2] = one.fork(slots[0], seed=9)
        if tick == WINDOW + 5:
            one.rewind(slots[1], one.frames(slots[1]) - 3)
            assert one.prefill() == [slots[1]]
        for slot in slots:
            known = {e: int(one._table.values[slot, e]) for e in one.pages.table(slot)}
            assert known == one.pages.table(slot)
    assert bool(one.shortened) == (pages == 16)
