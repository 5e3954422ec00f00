from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from duologue.duplex_plugins.lockstep.replay_log import ReplayLog
from duologue.engines.payloads import NOT_SAID, LockstepFrame


def frame(number: int) -> LockstepFrame:
    return LockstepFrame(number, b"", token=number, codes=(number + 1,), heard=(number + 2,))


def rows(log: ReplayLog) -> list[Sequence[int]]:
    packed = log.packed()
    numbers = [int.from_bytes(packed[i : i + 2], "little") for i in range(0, len(packed), 2)]
    return [numbers[i : i + 3] for i in range(0, len(numbers), 3)]


def test_a_frame_is_what_was_said_and_heard() -> None:
    log = ReplayLog(10)
    log.add(frame(0))
    log.add(frame(1))
    assert rows(log) == [[0, 1, 2], [1, 2, 3]]
    assert len(log) == 2


def test_what_is_taken_back_was_not_said_but_was_heard() -> None:
    log = ReplayLog(10)
    for number in range(3):
        log.add(frame(number))
    log.take_back(1)
    assert rows(log) == [[0, 1, 2], [NOT_SAID, NOT_SAID, 3], [NOT_SAID, NOT_SAID, 4]]


@given(st.lists(st.integers(0, 60), max_size=5), st.integers(1, 60))
def test_it_keeps_the_last_frames_and_no_more(cuts: list[int], frames: int) -> None:
    log = ReplayLog(10)
    for number in range(frames):
        log.add(frame(number))
        assert len(log) <= 20
    for cut in cuts:
        log.take_back(cut)
    kept = rows(log)
    assert len(kept) == min(frames, 10)
    first = frames - len(kept)
    gone_from = min(cuts, default=frames)
    for index, row in enumerate(kept):
        number = first + index
        assert row[2] == number + 2
        assert (row[0] == NOT_SAID) is (number >= gone_from)


def test_a_stream_that_does_not_tell_what_it_heard_leaves_nothing() -> None:
    log = ReplayLog(10)
    log.add(LockstepFrame(0, b"", codes=(1,)))
    assert log.packed() == b""
    log.take_back(0)


def test_after_clearing_another_stream_may_begin() -> None:
    log = ReplayLog(10)
    log.add(frame(5))
    log.clear()
    assert log.packed() == b""
    log.add(frame(0))
    log.take_back(0)
    assert rows(log) == [[NOT_SAID, NOT_SAID, 2]]
