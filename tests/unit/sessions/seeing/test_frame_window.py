from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duologue.sessions.seeing.frame_window import Frame, FrameWindow
from duologue.sessions.settings import FrameSettings


def shown(window: FrameWindow, *times: float, size: int = 10) -> list[str]:
    """Show a frame at each of these times, named by its number; returns those that gave way."""
    gone: list[str] = []
    for number, now in enumerate(times):
        gave_way = window.add(Frame(bytes(size), str(number)), now)
        gone += [frame.frame_id or "" for frame in gave_way]
    return gone


def names(window: FrameWindow) -> list[str | None]:
    return [frame.frame_id for frame in window.chosen()]


def test_of_the_frames_of_a_slot_the_newest_stays() -> None:
    window = FrameWindow(FrameSettings(per_s=2))
    assert shown(window, 10.0, 10.1, 10.4, 10.5, 10.9, 11.2) == ["0", "1", "3"]
    assert names(window) == ["2", "4", "5"]


def test_a_steady_stream_is_thinned_and_not_starved() -> None:
    window = FrameWindow(FrameSettings(per_s=2, kept=100, per_turn=64))
    shown(window, *(number / 30 for number in range(300)))
    assert len(window) == 20


@pytest.mark.parametrize(
    ("per_turn", "chosen"),
    [(1, [9]), (2, [0, 9]), (3, [0, 4, 9]), (4, [0, 3, 6, 9]), (10, range(10)), (20, range(10))],
)
def test_a_turn_is_given_the_newest_and_others_at_even_distances(
    per_turn: int, chosen: list[int]
) -> None:
    window = FrameWindow(FrameSettings(per_turn=per_turn))
    shown(window, *range(10))
    assert names(window) == [str(number) for number in chosen]


def test_the_oldest_go_where_there_are_too_many_or_too_much() -> None:
    window = FrameWindow(FrameSettings(kept=3, per_turn=9))
    assert shown(window, *range(5)) == ["0", "1"]
    assert names(window) == ["2", "3", "4"]
    small = FrameWindow(FrameSettings(kept_bytes=25, per_turn=9))
    assert shown(small, *range(4)) == ["0", "1"]
    assert small.held_bytes == 20
    assert [frame.frame_id for frame in small.add(Frame(bytes(100), "large"), 9.0)] == ["2", "3"]
    assert names(small) == ["large"], "the newest stays in any case"


def test_what_was_given_is_forgotten_and_the_next_frame_opens_a_slot() -> None:
    window = FrameWindow(FrameSettings(per_s=0.5))
    shown(window, 10.0)
    window.clear()
    assert (len(window), window.held_bytes, window.chosen()) == (0, 0, [])
    assert shown(window, 10.1, 12.0) == ["0"]


@given(
    steps=st.lists(st.tuples(st.floats(0, 3), st.integers(0, 40)), max_size=40),
    kept=st.integers(1, 5),
    kept_bytes=st.integers(1, 100),
    per_turn=st.integers(1, 6),
)
def test_bounds_hold_whatever_is_shown(
    steps: list[tuple[float, int]], kept: int, kept_bytes: int, per_turn: int
) -> None:
    window = FrameWindow(FrameSettings(kept=kept, kept_bytes=kept_bytes, per_turn=per_turn))
    now, alive = 0.0, list[Frame]()
    for number, (wait_s, size) in enumerate(steps):
        now += wait_s
        frame = Frame(bytes(size), str(number))
        alive.append(frame)
        for gone in window.add(frame, now):
            alive.remove(gone)
        chosen = window.chosen()
        assert window.held_bytes == window.count_held() == sum(len(f.data) for f in alive)
        assert len(window) <= kept
        assert window.held_bytes <= kept_bytes or len(window) == 1
        assert chosen[-1] is frame
        assert len(chosen) == min(per_turn, len(window))
        assert [f for f in alive if f in chosen] == chosen, "in order, each once"
