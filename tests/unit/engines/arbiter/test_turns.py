from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext

import pytest

from duologue.core.errors import ConfigError
from duologue.engines.arbiter.board import Board
from duologue.engines.arbiter.device_arbiter import Beat
from duologue.engines.arbiter.slice_costs import ENOUGH
from duologue.engines.arbiter.turns import (
    LIMIT_EXCEEDED,
    LOADED_PART_S,
    LONGEST_WAIT_S,
    PATIENCE_S,
    SLICE_TOO_LONG,
    BatchTurns,
    RealtimeTurns,
    Unshared,
    make_turns,
)
from duologue.engines.messages import Share, WorkerSpec
from duologue.engines.payloads import TextDelta
from duologue.engines.ports import WorkClass
from duologue.engines.runners.contract import Job
from tests.fakes.clock import FakeClock
from tests.fakes.sliced_runner import (
    SlicedRunner,
    SlicedSettings,
    TickingRunner,
    TickingSettings,
)

NOW = 100.0
CALLS, PICTURES, FILMS = 0, 1, 2
PERIOD_S = 0.080


@pytest.fixture
def board() -> Iterator[Board]:
    board = Board.make("gpu", 3, PERIOD_S, 1000)
    yield board
    board.close()


def sliced(**settings: object) -> SlicedRunner:
    values = SlicedSettings(**settings)  # type: ignore[arg-type]
    return SlicedRunner(values, spend=lambda _s: None)


def batch(board: Board, runner: SlicedRunner, number: int = PICTURES) -> BatchTurns:
    runner.warm_up()
    turns = BatchTurns(Board.opened_again(board.fd), number, runner, "gpu")
    turns.warm()
    return turns


def job(text: str, name: str = "job") -> Job:
    made = Job(name)
    made.inputs.append(TextDelta(text))
    return made


class TestBatch:
    def test_a_slice_is_granted_and_the_runner_told_when_to_end_it(self, board: Board) -> None:
        runner = sliced(part_s=0.01)
        turns = batch(board, runner)
        assert turns.wait_until([job("a")], NOW) is None
        assert runner.slice_s == pytest.approx(PERIOD_S / 2 - 0.01)

    def test_it_waits_while_a_call_steps_and_asks_again_before_long(self, board: Board) -> None:
        turns = batch(board, sliced())
        board.sit(CALLS, is_batch=False)
        board.publish(CALLS, Beat(busy_until=NOW + 0.01))
        assert turns.wait_until([job("a")], NOW) == NOW + 0.01
        board.publish(CALLS, Beat(busy_until=NOW + 100))
        assert turns.wait_until([job("a")], NOW) == NOW + LONGEST_WAIT_S

    def test_a_model_whose_shortest_slice_is_too_long_does_not_start(self, board: Board) -> None:
        with pytest.raises(ConfigError, match=r"50\.0 ms.*gpu.*every 80 ms.*40 ms.*of its own"):
            batch(board, sliced(part_s=0.05))

    def test_a_shape_that_proves_too_long_fails_and_others_go_on(self, board: Board) -> None:
        runner = sliced()
        runner.part_of = lambda text: 0.1 if text == "large" else 0.001
        turns = batch(board, runner)
        large, small = job("large"), job("s")
        now = NOW
        for left in reversed(range(ENOUGH)):
            now = run_slice(turns, runner, large, now)
            codes = [error.code for _, error in turns.stepped([large], now)]
            assert codes == ([] if left else [SLICE_TOO_LONG])
        now = run_slice(turns, runner, small, now)
        assert turns.stepped([small], now) == ()

    def test_what_was_long_by_chance_does_not_keep_it_waiting_for_ever(self, board: Board) -> None:
        runner = sliced(part_s=0.03)
        turns = batch(board, runner)
        board.sit(CALLS, is_batch=False)
        beat = Beat(NOW, NOW + 10, step_s=9.99)  # 10 ms are left, whatever happens
        board.publish(CALLS, beat)
        assert turns.wait_until([job("a")], NOW) is not None
        later = NOW + PATIENCE_S + 0.001
        board.publish(CALLS, Beat(later, later + 10, step_s=9.99))
        assert turns.wait_until([job("a")], later) is not None
        assert turns.wait_until([job("a")], later) is None

    def test_a_runner_that_is_dropped_holds_nothing_and_may_come_back(self, board: Board) -> None:
        runner = sliced(model_bytes=400)
        batch(board, runner).leave()
        assert board.look().seats == {}
        batch(board, runner)
        assert board.look().held_bytes == 400

    def test_who_has_nothing_to_do_is_not_waited_for(self, board: Board) -> None:
        pictures, films = batch(board, sliced()), batch(board, sliced(), FILMS)
        assert pictures.wait_until([job("a")], NOW) is None
        assert films.wait_until([job("b")], NOW) is not None
        pictures.stepped([job("a")], NOW + 0.01)
        assert pictures.wait_until([job("a")], NOW + 0.01) is not None
        films.idle()
        assert pictures.wait_until([job("a")], NOW + 0.01) is None


class TestMemory:
    def test_a_job_waits_until_there_is_room(self, board: Board) -> None:
        turns = batch(board, sliced(bytes_per_letter=300, model_bytes=100))
        first, second = job("ab", "first"), job("cd", "second")
        assert turns.admitted([first, second], NOW) == ([first], [])
        assert turns.admitted([second, first], NOW) == ([first], [])
        assert board.look().held_bytes == 700
        turns.over(first)
        assert turns.admitted([second], NOW) == ([second], [])

    def test_one_that_could_never_have_room_is_refused(self, board: Board) -> None:
        turns = batch(board, sliced(bytes_per_letter=300, model_bytes=200))
        large, small = job("abc", "large"), job("a", "small")
        admitted, ((refused, error),) = turns.admitted([large, small], NOW)
        assert (admitted, refused, error.code) == ([small], large, LIMIT_EXCEEDED)
        assert "900 bytes of gpu, the limit is 800" in error.message

    def test_models_that_do_not_fit_beside_each_other_do_not_start(self, board: Board) -> None:
        batch(board, sliced(model_bytes=700))
        with pytest.raises(ConfigError, match=r"takes 400 bytes.* 300 are left of 1000"):
            batch(board, sliced(model_bytes=400), FILMS)

    def test_a_device_without_a_budget_has_room(self) -> None:
        free = Board.make("gpu", 3, PERIOD_S, 0)
        turns = batch(free, sliced(bytes_per_letter=1 << 40))
        waiting = [job("abc")]
        assert turns.admitted(waiting, NOW) == (waiting, [])
        turns.over(waiting[0])
        free.close()


class Loading(SlicedRunner):
    """``LoadsInParts``."""

    def __init__(self, **settings: object) -> None:
        super().__init__(SlicedSettings(**settings), spend=lambda _s: None)  # type: ignore[arg-type]
        self.turn: Callable[[], AbstractContextManager[None]] = nullcontext


class TestLoading:
    """What a worker does on its device before it has jobs, and beside those of others."""

    def seated(
        self, board: Board, runner: Loading, pause: Callable[[float], None] | None = None
    ) -> tuple[BatchTurns, FakeClock]:
        clock = FakeClock(NOW)
        own = Board.opened_again(board.fd)
        return BatchTurns(own, FILMS, runner, "gpu", clock, pause or clock.advance), clock

    def test_room_is_taken_before_anything_is_there(self, board: Board) -> None:
        turns, _ = self.seated(board, Loading(model_bytes=600))
        assert turns.claim(NOW) is None
        assert board.look().held_bytes == 600
        turns.warm()
        assert board.look().held_bytes == 600, "it is the same room"
        turns.leave()
        assert board.look().held_bytes == 0

    def test_it_waits_for_the_jobs_of_others_and_then_comes_first(self, board: Board) -> None:
        others = batch(board, sliced(bytes_per_letter=100))
        jobs = [job("abcde", "first"), job("abcde", "second")]
        assert others.admitted(jobs[:1], NOW)[0] == jobs[:1]
        turns, _ = self.seated(board, Loading(model_bytes=600))
        again_at = turns.claim(NOW)
        assert again_at is not None
        assert again_at > NOW
        assert board.look().held_bytes == 500
        assert others.admitted(jobs, NOW + 0.01)[0] == jobs[:1], "it waits longer than the second"
        others.over(jobs[0])
        assert turns.claim(NOW + 0.02) is None
        assert board.look().held_bytes == 600

    def test_one_that_will_never_have_room_does_not_start(self, board: Board) -> None:
        first, _ = self.seated(board, Loading(model_bytes=600))
        first.claim(NOW)
        second = BatchTurns(Board.opened_again(board.fd), PICTURES, Loading(model_bytes=401), "gpu")
        with pytest.raises(ConfigError, match=r"401 bytes.* 400 are left"):
            second.claim(NOW)

    def test_each_part_waits_for_the_steps_of_calls(self, board: Board) -> None:
        waited: list[float] = []

        def pause(seconds: float) -> None:
            waited.append(seconds)
            clock.advance(seconds)
            board.publish(CALLS, Beat(clock.now() + 0.07, clock.now() + 0.15, 0.02))

        runner = Loading()
        turns, clock = self.seated(board, runner, pause)
        board.sit(CALLS, is_batch=False)
        board.publish(CALLS, Beat(busy_until=NOW + 0.015))
        with turns.turn():
            assert waited == [pytest.approx(0.015)]
            (seat,) = [each for each in board.look().seats.values() if each.is_batch]
            assert seat.runs_until > clock.now()
            assert 0 < runner.slice_s <= PERIOD_S / 2 - LOADED_PART_S
            clock.advance(0.01)
        assert board.look().seats[FILMS].runs_until == 0
        assert board.look().seats[FILMS].used_s == pytest.approx(0.01)

    def test_a_part_that_breaks_off_leaves_the_device_to_others(self, board: Board) -> None:
        turns, _ = self.seated(board, Loading())
        with pytest.raises(MemoryError), turns.turn():
            raise MemoryError
        assert board.look().seats[FILMS].runs_until == 0

    def test_where_so_much_time_is_never_left_it_takes_what_there_is(self, board: Board) -> None:
        def pause(seconds: float) -> None:
            clock.advance(seconds)
            board.publish(CALLS, Beat(clock.now(), clock.now() + 0.025, 0.01))

        turns, clock = self.seated(board, Loading(), pause)
        board.sit(CALLS, is_batch=False)
        board.publish(CALLS, Beat(NOW, NOW + 0.025, 0.01))
        with turns.turn():
            assert PATIENCE_S < clock.now() - NOW < 2 * PATIENCE_S

    def test_what_parts_of_loading_take_says_nothing_of_jobs(self, board: Board) -> None:
        runner = Loading(part_s=0.002)
        turns, clock = self.seated(board, runner)
        with turns.turn():
            clock.advance(0.03)
        runner.warm_up()
        turns.warm()
        assert turns.wait_until([job("a")], clock.now()) is None
        assert runner.slice_s == pytest.approx(PERIOD_S / 2 - 0.002)


class TestRealtime:
    def test_it_never_waits_and_says_when_it_steps(self, board: Board) -> None:
        turns = RealtimeTurns(board, CALLS, TickingRunner(TickingSettings()), 0.04)
        pictures = batch(board, sliced())
        turns.warm()
        assert turns.wait_until([job("a")], NOW) is None
        assert pictures.wait_until([job("a")], NOW) is not None
        turns.stepped([job("a")], NOW + 0.01)
        beat = board.look().seats[CALLS].beat
        assert (beat.due, beat.busy_until) == (NOW + 0.01, 0.0)
        assert (beat.deadline, beat.step_s) == pytest.approx((NOW + 0.05, 0.01))
        assert pictures.wait_until([job("a")], NOW + 0.01) is None

    def test_a_runner_with_a_beat_of_its_own_says_it_itself(self, board: Board) -> None:
        runner = Keeping()
        turns = RealtimeTurns(board, CALLS, runner, 0.08)
        runner.on_beat(Beat(1.0, 2.0, 0.5))
        turns.wait_until([job("a")], NOW)
        turns.stepped([job("a")], NOW)
        assert board.look().seats[CALLS].beat == Beat(1.0, 2.0, 0.5)


class Keeping(TickingRunner):
    def __init__(self) -> None:
        self.on_beat: Callable[[Beat], None] = lambda _beat: None


class TestMaking:
    def test_workers_sit_where_they_were_told(self, board: Board) -> None:
        runner = sliced()
        for work_class, kind in (
            (WorkClass.BATCH, BatchTurns),
            (WorkClass.REALTIME, RealtimeTurns),
            (WorkClass.INTERACTIVE, Unshared),
        ):
            share = Share(board=board.fd, seat=2, device="gpu", period_s=0.08)
            spec = WorkerSpec(name="w", runner="r", work_class=work_class, share=share)
            assert type(make_turns(spec, runner)) is kind

    def test_without_a_share_nobody_is_asked(self) -> None:
        turns = make_turns(WorkerSpec(name="w", runner="r"), sliced())
        turns.warm()
        waiting = [job("a")]
        assert turns.admitted(waiting, NOW) == (waiting, [])
        assert turns.wait_until(waiting, NOW) is None
        assert turns.stepped(waiting, NOW) == ()
        turns.idle()
        turns.over(waiting[0])
        turns.leave()


def run_slice(turns: BatchTurns, runner: SlicedRunner, each: Job, now: float) -> float:
    """Wait for a slice, however long, and make it; returns when it has ended."""
    while (again_at := turns.wait_until([each], now)) is not None:
        now = max(again_at, now + PATIENCE_S)
    each.state = 0
    runner.step([each])
    return now + runner.longest_part_s
