from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Iterator

import pytest

from duologue.engines.arbiter.board import Board
from duologue.engines.arbiter.device_arbiter import Beat, Grant, Seat, Wait
from duologue.engines.transport import memory_file

NOW = 10.0


@pytest.fixture
def board() -> Iterator[Board]:
    board = Board.make("cpu", 3, 0.08, 1000)
    yield board
    board.close()


def test_what_one_end_says_the_other_reads(board: Board) -> None:
    other = Board.opened_again(board.fd)
    other.sit(2, is_batch=False)
    other.publish(2, Beat(1.0, 2.0, 0.5, 3.0))
    seen = board.look()
    assert (seen.period_s, seen.budget_bytes) == (0.08, 1000)
    assert seen.seats == {2: Seat(beat=Beat(1.0, 2.0, 0.5, 3.0))}
    other.close()


def test_ends_of_one_board_are_one_arbiter(board: Board) -> None:
    first, second = Board.opened_again(board.fd), Board.opened_again(board.fd)
    first.sit(0, is_batch=True)
    second.sit(1, is_batch=True)
    with first.deciding() as arbiter:
        assert arbiter.ask(0, 0.01, NOW) == Grant(0.04)
    with second.deciding() as arbiter:
        assert arbiter.ask(1, 0.01, NOW) == Wait(NOW + 0.04)
        assert arbiter.take_bytes(1, 400, NOW)
    assert first.look().held_bytes == 400
    first.close()
    second.close()


def test_a_seat_that_was_left_holds_nothing_and_is_as_new_for_the_next(board: Board) -> None:
    board.sit(0, is_batch=True)
    with board.deciding() as arbiter:
        arbiter.take_bytes(0, 400, NOW)
    board.leave(0)
    assert board.look().seats == {}
    board.sit(0, is_batch=True)
    assert board.look().seats == {0: Seat(is_batch=True)}


def test_a_beat_that_is_never_whole_lets_nothing_run(board: Board) -> None:
    """As of a worker that was killed while it wrote."""
    board.sit(0, is_batch=False)
    board.sit(1, is_batch=True)
    with memory_file.MemoryFile(os.dup(board.fd)).map(0, 4096, writable=True) as raw:
        raw[64 + 8] = 1  # the number of its write is odd
    with board.deciding() as arbiter:
        answer = arbiter.ask(1, 0.0, NOW)
    assert isinstance(answer, Wait)
    board.leave(0)
    with board.deciding() as arbiter:
        assert isinstance(arbiter.ask(1, 0.0, NOW), Grant)


def _killed_with_the_lock(fd: int) -> None:
    with Board.opened_again(fd).deciding():
        os.kill(os.getpid(), signal.SIGKILL)


def test_the_lock_goes_with_whoever_held_it(board: Board) -> None:
    context = multiprocessing.get_context("fork")
    child = context.Process(target=_killed_with_the_lock, args=(board.fd,))
    child.start()
    child.join()
    assert child.exitcode == -signal.SIGKILL
    with board.deciding() as arbiter:
        assert arbiter.seats == {}
