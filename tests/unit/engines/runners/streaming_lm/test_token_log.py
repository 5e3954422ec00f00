"""What a stream said and heard."""

from __future__ import annotations

import numpy as np
import pytest

from duologue.engines.models.moshi_lm.token_grid import Frame, first_frame
from duologue.engines.runners.streaming_lm.token_log import TokenLog
from tests.unit.engines.runners.streaming_lm.tiny_network import CONFIG, WINDOW

pytestmark = pytest.mark.torch


def numbers(position: int) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    return np.arange(position, position + CONFIG.streams, dtype=np.int32)


def frame(position: int) -> Frame:
    text, *codes = numbers(position).tolist()
    return Frame(text, tuple(codes[:8]), tuple(codes[8:]))


def filled(frames: int) -> TokenLog:
    log = TokenLog(CONFIG, 5, first_frame(CONFIG))
    for position in range(6, 6 + frames):
        log.append(numbers(position))
    return log


def test_frames_are_found_by_their_position() -> None:
    log = filled(4)
    assert (log.begin, log.end, log.oldest) == (5, 10, 5)
    assert log.frame(5) == first_frame(CONFIG)
    assert [log.frame(each) for each in range(6, 10)] == [frame(each) for each in range(6, 10)]


def test_it_holds_one_window_and_the_frame_before() -> None:
    log = filled(3 * WINDOW)
    assert log.end - log.oldest == WINDOW + 1
    assert log.frame(log.oldest) == frame(log.oldest)
    for position in (log.oldest - 1, log.end):
        with pytest.raises(IndexError, match="is not among"):
            log.frame(position)


def test_what_is_forgotten_is_written_anew() -> None:
    log = filled(6)
    log.truncate(8)
    assert log.end == 8
    log.append(numbers(99))
    assert log.frame(8) == frame(99)


def test_a_copy_goes_on_by_itself() -> None:
    log = filled(3)
    copied = log.copy()
    copied.append(numbers(70))
    log.append(numbers(80))
    assert (log.frame(9), copied.frame(9)) == (frame(80), frame(70))
