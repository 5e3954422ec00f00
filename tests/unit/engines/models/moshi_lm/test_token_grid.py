from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duologue.engines.models.moshi_lm.config import tiny
from duologue.engines.models.moshi_lm.token_grid import (
    Frame,
    Spoken,
    TokenGrid,
    first_frame,
    row,
    rows,
)

pytestmark = pytest.mark.torch

CONFIG = tiny(codebooks=3, audio_card=50, silence=(1, 2, 3), sine=(4, 5, 6))
INITIAL = first_frame(CONFIG)

codes = st.tuples(*[st.integers(0, 49)] * 3)
frames = st.builds(Frame, st.integers(0, 99), codes, codes)


def test_late_codes_are_those_of_the_frame_before() -> None:
    before = Frame(1, (10, 11, 12), (20, 21, 22))
    now = Frame(2, (30, 31, 32), (40, 41, 42))
    assert row(CONFIG, now, before) == (2, 30, 11, 12, 40, 21, 22)


def test_before_everything_all_tokens_are_the_initial_ones() -> None:
    assert rows(CONFIG, [INITIAL], INITIAL) == [(100, *[50] * 6)]


@given(before=frames, made=st.lists(st.tuples(st.integers(0, 99), codes, codes), min_size=2))
def test_what_was_said_and_heard_makes_the_rows_that_were_read(
    before: Frame, made: list[tuple[int, tuple[int, ...], tuple[int, ...]]]
) -> None:
    """A stream can be gone through again from a log of its frames."""
    grid = TokenGrid(CONFIG, before, made[0][0], made[0][1])
    read, lived = [], []
    for (_, _, heard), (text, said, _) in pairwise(made):
        read.append(grid.row(heard))
        spoken = grid.wrote(heard, text, said)
        lived.append(Frame(spoken.text, spoken.codes, heard))
    assert rows(CONFIG, lived, before) == read


def test_a_frame_is_whole_one_step_after_its_beginning() -> None:
    grid = TokenGrid(CONFIG, INITIAL, 7, (1, 2, 3))
    # The late codes of the first position belong to the frame before, which was given.
    assert grid.row((9, 9, 9)) == (7, 1, 50, 50, 9, 50, 50)
    assert grid.wrote((9, 9, 9), 8, (11, 12, 13)) == Spoken(7, (1, 12, 13))
    assert grid.row((8, 8, 8)) == (8, 11, 12, 13, 8, 9, 9)
