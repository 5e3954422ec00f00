"""What waits for a frame, and how frames are made of it."""

from __future__ import annotations

import numpy as np
import pytest

from duologue.engines.runners.streaming_lm.heard_audio import HeardAudio
from duologue.engines.runners.streaming_lm.ticks.frame_feed import Cut

pytestmark = pytest.mark.torch  # for the folder: samples themselves need none


def samples(first: int, count: int) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    return np.arange(first, first + count, dtype=np.float32)


def cut(take: int, silence: int = 0, *, skip: int = 0, leads: bool = False) -> Cut:
    return Cut(0, 1, 0, skip, take, silence, leads, 0.0, False)


def test_samples_come_out_in_the_order_they_came_in() -> None:
    heard = HeardAudio(2, 30, 8)
    heard.append(0, samples(0, 5), 0)
    heard.append(1, samples(100, 9), 0)
    heard.append(0, samples(5, 12), 0)
    assert heard.take(cut(8)).tolist() == samples(0, 8).tolist()
    assert heard.take(cut(8)).tolist() == samples(8, 8).tolist()


def test_the_oldest_are_dropped_those_of_the_message_among_them() -> None:
    heard = HeardAudio(1, 10, 8)
    heard.append(0, samples(0, 6), 0)
    heard.append(0, samples(6, 6), 2)
    assert heard.take(cut(8)).tolist() == samples(2, 8).tolist()
    heard.append(0, samples(50, 20), 12)
    assert heard.take(cut(8)).tolist() == samples(60 + 2 - 2, 8).tolist()


def test_silence_stands_before_or_after_what_there_is() -> None:
    heard = HeardAudio(1, 20, 8)
    heard.append(0, samples(1, 6), 0)
    assert heard.take(cut(3, 5, leads=True)).tolist() == [0, 0, 0, 0, 0, 1, 2, 3]
    assert heard.take(cut(3, 5)).tolist() == [4, 5, 6, 0, 0, 0, 0, 0]
    assert heard.take(cut(0, 8)).tolist() == [0] * 8


def test_what_a_missed_tick_would_have_taken_is_thrown_away() -> None:
    heard = HeardAudio(1, 30, 8)
    heard.append(0, samples(0, 20), 0)
    assert heard.take(cut(8, skip=8)).tolist() == samples(8, 8).tolist()


def test_a_few_samples_more_are_fitted() -> None:
    heard = HeardAudio(1, 30, 8)
    heard.append(0, samples(0, 9), 0)
    frame = heard.take(cut(9))
    assert len(frame) == 8
    assert frame[0] == 0
    assert (np.diff(frame) > 1).all()


def test_a_new_stream_hears_nothing_of_the_last_one() -> None:
    heard = HeardAudio(1, 30, 8)
    heard.append(0, samples(1, 9), 0)
    heard.clear(0)
    heard.append(0, samples(50, 8), 0)
    assert heard.take(cut(8)).tolist() == samples(50, 8).tolist()
