from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duologue.engines.runners.diffusion.windows import Blender, Film, in_windows


def numbered(count: int) -> list[Film]:
    return [np.full((1, 1, 3), number, np.float32) for number in range(count)]


def numbers(film: Film) -> list[float]:
    return [float(picture[0, 0, 0]) for picture in film]


@st.composite
def cuts(draw: st.DrawFn) -> tuple[int, int, int]:
    length = draw(st.integers(1, 9))
    return draw(st.integers(1, 60)), length, draw(st.integers(0, length - 1))


@given(cuts())
def test_what_no_window_changes_comes_out_as_it_was(cut: tuple[int, int, int]) -> None:
    count, length, overlap = cut
    windows = list(in_windows(numbered(count), length, overlap))
    blender = Blender(overlap)
    joined = [
        number
        for at, window in enumerate(windows)
        for number in numbers(blender.add(window, is_last=at == len(windows) - 1))
    ]
    assert joined == pytest.approx(list(range(count)), abs=1e-4)
    assert all(len(window) <= length for window in windows)


def test_windows_share_pictures() -> None:
    windows = [numbers(each) for each in in_windows(numbered(8), 4, 2)]
    assert windows == [[0, 1, 2, 3], [2, 3, 4, 5], [4, 5, 6, 7]]


def test_one_fades_out_while_the_next_fades_in() -> None:
    dark, light = np.zeros((4, 1, 1, 3), np.float32), np.ones((4, 1, 1, 3), np.float32)
    blender = Blender(3)
    assert numbers(blender.add(dark, is_last=False)) == [0]
    assert numbers(blender.add(light, is_last=True)) == [0.25, 0.5, 0.75, 1]


def test_windows_that_share_everything_would_never_end() -> None:
    with pytest.raises(ValueError, match="cannot share 4"):
        list(in_windows(numbered(8), 4, 4))
