from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duologue.gateway.webrtc.playout import SILENCE, Played, Playout

RATE_HZ = 24_000
FRAME = 960
"""20 ms in bytes."""


def playout() -> Playout:
    return Playout(FRAME, RATE_HZ)


def tone(ms: float, value: int = 1) -> bytes:
    return bytes((value, 0)) * int(ms * 24)


def play(out: Playout, frames: int) -> list[Played]:
    return [out.next_frame() for _ in range(frames)]


def test_nothing_to_say_is_silence() -> None:
    assert play(playout(), 3) == [SILENCE] * 3


def test_speech_is_cut_into_frames_with_the_place_that_each_reaches() -> None:
    out = playout()
    out.append("r", "i", tone(50))
    out.append("r", "i", tone(30))
    assert out.waiting_ms == 80
    frames = play(out, 4)
    assert [frame.played_ms for frame in frames] == [20, 40, 60, 80]
    assert {frame.pcm for frame in frames} == {tone(20)}
    assert [frame.started for frame in frames] == ["r", None, None, None]
    assert [frame.stopped for frame in frames] == [None] * 4
    assert out.next_frame() == SILENCE


def test_the_last_frame_is_filled_up_and_says_that_it_is_the_last() -> None:
    """C47: one padded frame at most per utterance."""
    out = playout()
    out.append("r", "i", tone(50))
    out.complete("r")
    *_, last = play(out, 3)
    assert last == Played(tone(10).ljust(FRAME, b"\0"), "i", 50, None, "r")
    assert out.next_frame() == SILENCE


def test_the_end_may_be_known_after_the_last_frame() -> None:
    out = playout()
    out.append("r", "i", tone(20))
    out.next_frame()
    out.complete("r")
    assert out.next_frame() == Played(stopped="r")
    assert out.next_frame() == SILENCE


def test_a_response_without_sound_neither_starts_nor_stops() -> None:
    out = playout()
    out.append("r", "i", b"")
    out.complete("r")
    assert out.next_frame() == SILENCE


def test_c48_speech_that_comes_too_slowly_waits_for_a_whole_frame() -> None:
    out = playout()
    out.append("r", "i", tone(30))
    assert [frame.pcm is None for frame in play(out, 3)] == [False, True, True]
    out.append("r", "i", tone(10))
    assert out.next_frame() == Played(tone(20), "i", 40)


def test_responses_are_played_one_after_the_other() -> None:
    out = playout()
    out.append("a", "i", tone(30, 1))
    out.append("b", "j", tone(20, 2))
    out.complete("a")
    frames = play(out, 3)
    assert [(frame.item_id, frame.started, frame.stopped) for frame in frames] == [
        ("i", "a", None),
        ("i", None, "a"),
        ("j", "b", None),
    ]


def test_what_is_cleared_is_silent_from_the_next_frame_on() -> None:
    out = playout()
    out.append("a", "i", tone(1000))
    out.append("b", "j", tone(20, 2))
    out.next_frame()
    assert out.clear("a")
    assert out.next_frame().item_id == "j"
    assert not out.clear("a")


def test_what_was_never_heard_is_cleared_in_silence() -> None:
    out = playout()
    out.append("a", "i", tone(1000))
    assert not out.clear("a")
    assert out.waiting_ms == 0


def test_a_cut_behind_what_was_played_stops_at_once() -> None:
    out = playout()
    out.append("a", "i", tone(1000))
    play(out, 5)
    assert out.cut("i", 100) == "a"
    assert out.next_frame() == SILENCE


def test_a_cut_ahead_plays_until_there() -> None:
    out = playout()
    out.append("a", "i", tone(1000))
    play(out, 5)
    assert out.cut("i", 150) is None
    frames = play(out, 3)
    assert [frame.played_ms for frame in frames] == [120, 140, 150]
    assert frames[-1].stopped == "a"
    assert out.next_frame() == SILENCE


@pytest.mark.parametrize("end_ms", [20, 150])
def test_what_comes_after_a_cut_is_not_played(end_ms: int) -> None:
    out = playout()
    out.append("a", "i", tone(1000))
    play(out, 5)
    out.cut("i", end_ms)
    out.append("a", "i", tone(1000))
    assert out.waiting_ms == max(0, end_ms - 100)


@pytest.mark.parametrize("end_ms", [1000, 5000])
def test_a_cut_behind_everything_changes_nothing(end_ms: int) -> None:
    out = playout()
    out.append("a", "i", tone(1000))
    assert out.cut("i", end_ms) is None
    assert out.waiting_ms == 1000
    assert out.cut("unknown", 0) is None


@given(pieces=st.lists(st.integers(1, 3000), min_size=1, max_size=20), cut=st.integers(0, 200))
def test_every_sample_is_played_once_and_in_order(pieces: list[int], cut: int) -> None:
    out = playout()
    said = b""
    for number, samples in enumerate(pieces):
        piece = bytes((number + 1, 0)) * samples
        said += piece
        out.append("r", "i", piece)
    out.complete("r")
    end = min(len(said), cut * 48)
    if end < len(said):
        out.cut("i", cut)
    heard = b""
    while (frame := out.next_frame()).pcm is not None:
        heard += frame.pcm
        assert frame.played_ms <= max(cut, len(said) // 48 + 1)
    assert heard[:end] == said[:end]
    assert len(heard) - end < FRAME
    assert not any(heard[end:])
    assert out.waiting_ms == 0
