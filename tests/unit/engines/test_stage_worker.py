from __future__ import annotations

from collections.abc import Sequence

import pytest

from duologue.core.errors import ConfigError, EngineError
from duologue.engines.frame_counts import FrameCounts
from duologue.engines.messages import (
    Append,
    Cancel,
    Counted,
    Finish,
    Grant,
    JobEnded,
    JobOutput,
    JobTaken,
    Open,
    Pause,
    Paused,
    Ready,
    Report,
    Rested,
    Sleep,
    Wake,
)
from duologue.engines.payloads import AudioChunk, Payload
from duologue.engines.ports import Outcome
from duologue.engines.runners.contract import Job, Step
from duologue.engines.runners.registry import Built
from duologue.engines.runners.registry import Wake as WakeUp
from duologue.engines.schedulers.base import Choice
from duologue.engines.schedulers.fifo import Fifo
from duologue.engines.stage_worker import COUNT_EVERY_S, TELL_BYTES, StageWorker
from duologue.engines.worker_model import Announce
from tests.fakes.clock import FakeClock
from tests.unit.engines.worker_scene import EchoRunner, Scene, stream, word

COMPLETED, CANCELLED, FAILED = Outcome.COMPLETED, Outcome.CANCELLED, Outcome.FAILED


class TestLife:
    def test_it_is_ready_only_when_the_runner_is_warm(self) -> None:
        scene = Scene()
        scene.run()
        assert scene.runner.calls == ["warm_up"]
        assert scene.reports[0].messages == [Ready(took_s=0.0)]

    def test_a_runner_that_cannot_be_loaded_is_the_callers_to_report(self) -> None:
        def load(_wake: WakeUp, _announce: Announce) -> Built:
            raise ConfigError("no such runner")

        reports: list[Report] = []
        worker = StageWorker(load=load, schedule=Fifo, post=reports.append, clock=FakeClock())
        with pytest.raises(ConfigError):
            worker.run()
        assert reports == []

    def test_stop_ends_and_closes_all_jobs(self) -> None:
        scene = Scene()
        scene.run(stream("a"), stream("b"))
        assert scene.said == [JobEnded("a", CANCELLED), JobEnded("b", CANCELLED)]
        assert scene.runner.calls[-2:] == ["close a", "close b"]


class TestJobs:
    def test_a_whole_request_is_answered_and_closed(self) -> None:
        scene = Scene()
        scene.run(Open("a", word("hi")))
        assert scene.said == [JobOutput("a", word("hi")), JobEnded("a", COMPLETED)]
        assert scene.runner.calls == ["warm_up", "open a", "close a"]

    def test_a_stream_is_open_until_its_input_ends(self) -> None:
        scene = Scene()
        scene.then = [[Append("a", word("two"))], [Finish("a")]]
        scene.run(stream("a"), Append("a", word("one ")))
        assert scene.text("a") == "one two"
        assert scene.end("a").outcome is COMPLETED

    def test_a_step_that_says_done_ends_a_job_whose_input_is_open(self) -> None:
        scene = Scene()
        scene.runner.answer = lambda job, payload: Step((payload,), done=True)
        scene.run(stream("a"), Append("a", word("one")), Append("a", word("two")))
        assert scene.said == [JobOutput("a", word("one")), JobEnded("a", COMPLETED)]

    def test_all_jobs_that_are_ready_share_a_step(self) -> None:
        scene = Scene()
        scene.run(*(Open(job, word("x")) for job in "abc"))
        assert scene.runner.batches == [["a", "b", "c"]]
        outputs, *_ = scene.reports[1:]
        assert [type(message) for message in outputs.messages] == [JobOutput] * 3

    def test_jobs_take_turns_where_a_step_is_too_small(self) -> None:
        scene = Scene(EchoRunner(max_batch=2))
        scene.run(
            *(stream(job) for job in "abc"),
            *(Append(job, word(job)) for job in "abc"),
            *(Append(job, word(job)) for job in "abc"),
        )
        assert scene.runner.batches == [["a", "b"], ["c", "a"], ["b", "c"]]

    def test_a_step_reports_how_long_it_took(self) -> None:
        scene = Scene()
        scene.runner.during_step = lambda jobs: scene.clock.advance(0.25)
        scene.run(Open("a", word("x")))
        assert [report.step_s for report in scene.reports if report.step_s] == [0.25]

    def test_news_for_a_job_that_has_ended_is_dropped(self) -> None:
        scene = Scene()
        scene.then = [[Append("a", word("y")), Finish("a"), Grant("a", 1), Cancel("a")]]
        scene.run(Open("a", word("x")))
        assert scene.said == [JobOutput("a", word("x")), JobEnded("a", COMPLETED)]


class TestFailure:
    def test_a_job_that_finds_no_room_fails_alone_and_is_not_closed(self) -> None:
        scene = Scene()
        scene.runner.refuse = {"a"}
        scene.run(Open("a", word("x")), Open("b", word("y")))
        assert scene.end("a") == JobEnded("a", FAILED, "out_of_memory", "no room")
        assert scene.text("b") == "y"
        assert "close a" not in scene.runner.calls

    def test_an_error_of_one_job_leaves_the_others_of_its_batch(self) -> None:
        scene = Scene()
        scene.runner.answer = lambda job, payload: (
            Step(error=EngineError("bad input")) if job.id == "a" else Step((payload,))
        )
        scene.run(Open("a", word("x")), Open("b", word("y")))
        assert scene.end("a") == JobEnded("a", FAILED, "stage_failed", "bad input")
        assert scene.end("b").outcome is COMPLETED
        assert {"close a", "close b"} <= set(scene.runner.calls)

    def test_a_failed_batch_fails_all_its_jobs_and_the_worker_goes_on(self) -> None:
        scene = Scene(EchoRunner(max_batch=2))

        def explode(jobs: Sequence[Job]) -> None:
            if jobs[0].id == "a":
                raise EngineError("device lost", code="device_lost")

        scene.runner.during_step = explode
        scene.run(*(Open(job, word(job)) for job in "abc"))
        assert scene.end("a") == JobEnded("a", FAILED, "device_lost", "device lost")
        assert scene.end("b").code == "device_lost"
        assert scene.text("c") == "c"

    def test_a_step_without_memory_fails_its_jobs_and_the_worker_goes_on(self) -> None:
        scene = Scene(EchoRunner(max_batch=2))

        def starve(jobs: Sequence[Job]) -> None:
            if jobs[0].id == "a":
                raise MemoryError

        scene.runner.during_step = starve
        scene.run(*(Open(job, word(job)) for job in "abc"))
        assert [scene.end(job).code for job in "ab"] == ["out_of_memory"] * 2
        assert scene.text("c") == "c"
        assert {"close a", "close b"} <= set(scene.runner.calls)

    def test_a_job_that_cannot_be_opened_for_want_of_memory_fails_alone(self) -> None:
        scene = Scene()
        scene.runner.starve.add("a")
        scene.run(Open("a", word("x")), Open("b", word("y")))
        assert scene.end("a").code == "out_of_memory"
        assert scene.end("b").outcome is COMPLETED

    def test_any_other_exception_ends_the_worker(self) -> None:
        scene = Scene()
        scene.runner.answer = lambda job, payload: 1 / 0  # type: ignore[return-value]
        with pytest.raises(ZeroDivisionError):
            scene.run(Open("a", word("x")))

    def test_a_step_with_too_few_results_ends_the_worker(self) -> None:
        scene = Scene()
        scene.runner.step = lambda jobs: []  # type: ignore[method-assign]
        with pytest.raises(ValueError, match="shorter"):
            scene.run(Open("a", word("x")))


class TestCancel:
    def test_it_overtakes_the_input_that_waits(self) -> None:
        scene = Scene()
        scene.run(stream("a"), *(Append("a", word("x")) for _ in range(5)), Cancel("a"))
        assert scene.said == [JobEnded("a", CANCELLED)]
        assert scene.runner.batches == []

    def test_a_job_that_was_not_opened_yet_never_is(self) -> None:
        scene = Scene()
        scene.run(Open("a", word("x")), Cancel("a"))
        assert scene.said == [JobEnded("a", CANCELLED)]
        assert scene.runner.calls == ["warm_up"]

    def test_a_step_can_see_it_while_it_runs_and_its_outputs_are_dropped(self) -> None:
        scene = Scene()
        seen = []

        def cancel_meanwhile(jobs: Sequence[Job]) -> None:
            scene.worker.receive((Cancel("a"),))
            seen.extend(job.cancelled for job in jobs)

        scene.runner.during_step = cancel_meanwhile
        scene.run(Open("a", word("x")), Open("b", word("y")))
        assert seen == [True, False]
        assert scene.of("a") == [JobEnded("a", CANCELLED)]
        assert scene.text("b") == "y"
        assert scene.runner.calls.count("close a") == 1

    def test_one_that_crosses_the_end_is_answered_by_that_end(self) -> None:
        scene = Scene()
        scene.then = [[Cancel("a")]]
        scene.run(Open("a", word("x")))
        assert scene.end("a").outcome is COMPLETED

    def test_one_that_waits_does_not_hit_the_next_job_of_the_same_name(self) -> None:
        scene = Scene(EchoRunner(max_batch=1))

        def cancel_meanwhile(jobs: Sequence[Job]) -> None:
            if len(scene.runner.batches) == 1:
                scene.worker.receive((Append("a", word("old")), Cancel("a")))

        def begin_again(report: Report) -> None:
            # The engine hears of the end while the old messages still wait to be looked at.
            if report.messages == [JobEnded("a", CANCELLED)]:
                scene.worker.receive((Open("a", word("new")),))

        scene.runner.during_step = cancel_meanwhile
        scene.on_report = begin_again
        scene.run(Open("a", word("first")))
        ends = [message.outcome for message in scene.of("a") if isinstance(message, JobEnded)]
        assert ends == [CANCELLED, COMPLETED]
        assert scene.text("a") == "new"

    def test_a_sliced_job_is_stopped_between_slices(self) -> None:
        scene = Scene()
        slices = []

        def denoise(job: Job, payload: Payload) -> Step:
            slices.append(len(slices))
            job.inputs.append(payload)  # there is more to do
            if len(slices) == 3:
                scene.worker.receive((Cancel("a"),))
            return Step()

        scene.runner.answer = denoise
        scene.run(Open("a", word("a picture")))
        assert len(slices) == 3
        assert scene.said == [JobEnded("a", CANCELLED)]


class TestCredit:
    def test_each_output_costs_and_without_credit_there_is_no_step(self) -> None:
        scene = Scene()
        scene.then = [lambda: idle.append(scene.text("a")), [Grant("a", 1)], []]
        idle: list[str] = []
        scene.run(stream("a", credit=2), *(Append("a", word("x")) for _ in range(5)))
        assert idle == ["xx"]
        assert scene.text("a") == "xxx"

    def test_audio_costs_its_milliseconds(self) -> None:
        scene = Scene()
        chunk = AudioChunk(bytes(1280), 16_000)  # 40 ms
        scene.run(stream("a", credit=81), *(Append("a", chunk) for _ in range(5)))
        assert len([each for each in scene.of("a") if isinstance(each, JobOutput)]) == 3

    def test_a_job_with_nothing_left_to_say_ends_without_credit(self) -> None:
        scene = Scene()
        scene.run(Open("a", word("x"), credit=1))
        assert scene.end("a").outcome is COMPLETED

    def test_a_job_without_a_bound_ignores_grants(self) -> None:
        scene = Scene()
        scene.run(stream("a"), Grant("a", 1), *(Append("a", word("x")) for _ in range(3)))
        assert scene.text("a") == "xxx"


class TestTaken:
    def test_what_a_step_took_is_reported_at_once_where_another_stage_waits_for_it(self) -> None:
        scene = Scene()
        scene.run(
            Open("a", input_ended=False, taken_at_once=True),
            *(Append("a", word(text)) for text in ("x", "yes")),
            stream("b"),
            Append("b", word("z")),
        )
        assert scene.taken == [JobTaken("a", 1, word("x").size_bytes()), JobTaken("a", 1, 259)]

    def test_a_step_may_take_several_inputs_or_none(self) -> None:
        scene = Scene()
        steps = iter([3, 0, 1])

        def take(job: Job, payload: Payload) -> Step:
            job.inputs.appendleft(payload)
            for _ in range(next(steps)):
                job.inputs.popleft()
            return Step()

        scene.runner.answer = take
        scene.run(
            Open("a", input_ended=False, taken_at_once=True),
            *(Append("a", word("x")) for _ in range(4)),
        )
        assert scene.taken == [JobTaken("a", 3, 3 * 257), JobTaken("a", 1, 257)]

    def test_otherwise_it_is_reported_when_it_has_become_much(self) -> None:
        scene = Scene()
        chunk = AudioChunk(bytes(TELL_BYTES // 2), 16_000)
        scene.run(stream("a"), *(Append("a", chunk) for _ in range(5)))
        assert scene.taken == [JobTaken("a", 2, 2 * chunk.size_bytes())] * 2

    def test_the_first_input_is_one_of_them(self) -> None:
        scene = Scene()
        chunk = AudioChunk(bytes(TELL_BYTES), 16_000)
        scene.run(Open("a", chunk, input_ended=False))
        assert scene.taken == [JobTaken("a", 1, chunk.size_bytes())]

    def test_a_job_that_ends_with_the_step_has_nothing_more_to_report(self) -> None:
        scene = Scene()
        scene.runner.answer = lambda job, payload: Step((payload,), done=True)
        scene.run(Open("a", word("x"), taken_at_once=True))
        assert scene.taken == []


class TestWaking:
    def test_a_runner_that_wakes_itself_ends_its_jobs_itself(self) -> None:
        scene = Scene(wakes_itself=True)
        arrived: list[str] = []
        scene.runner.ready = lambda job: bool(job.inputs or arrived)  # type: ignore[method-assign]

        def step(jobs: Sequence[Job]) -> Sequence[Step]:
            if jobs[0].inputs:
                jobs[0].inputs.clear()
                return [Step()]
            return [Step((word(arrived.pop()),), done=True)]

        def news() -> None:
            arrived.append("from afar")
            assert scene.wake is not None
            scene.wake()

        scene.runner.step = step  # type: ignore[method-assign]
        scene.then = [news]
        scene.run(Open("a", word("ask")))
        assert scene.said == [JobOutput("a", word("from afar")), JobEnded("a", COMPLETED)]

    def test_to_wake_is_noted_once_until_the_worker_looks(self) -> None:
        scene = Scene(wakes_itself=True)
        asked: list[str] = []

        def ready(job: Job) -> bool:
            asked.append(job.id)
            return bool(job.inputs)

        def wake_often() -> None:
            assert scene.wake is not None
            asked.clear()
            for _ in range(1000):
                scene.wake()
            assert len(scene.worker._inbox._items) == 1

        scene.runner.ready = ready  # type: ignore[method-assign]
        scene.then = [wake_often, wake_often]
        scene.run(Open("a", word("x")))
        assert asked == ["a"]

    def test_a_scheduler_can_ask_to_be_asked_again(self) -> None:
        class Later:
            """Waits for one moment that has come when it asks again."""

            def __init__(self, max_batch: int) -> None:
                self.asked = 0

            def next_batch(self, ready: Sequence[Job], now: float) -> Choice:
                self.asked += bool(ready)
                if self.asked == 1:
                    return Choice((), wake_at=now)
                return Choice(ready)

        scene = Scene(schedule=Later)
        scene.run(Open("a", word("x")))
        assert scene.text("a") == "x"


class TestRest:
    def test_it_sleeps_and_wakes_when_told_and_answers(self) -> None:
        scene = Scene(sleep_levels=(2,))
        scene.then = [[Sleep(2)], [Wake()], [Open("a", word("hi"))]]
        scene.run()
        rested = [each for each in scene.said if isinstance(each, Rested)]
        assert [each.level for each in rested] == [2, 0]
        assert scene.phases == ["load", "warm_up", "load", "warm_up"]
        assert scene.end("a").outcome is COMPLETED

    def test_it_does_not_sleep_while_jobs_are_open(self) -> None:
        scene = Scene(sleep_levels=(2,))
        scene.then = [[Sleep(2)], [Append("a", word("go on")), Finish("a")]]
        scene.run(stream("a"))
        (rested,) = [each for each in scene.said if isinstance(each, Rested)]
        assert (rested.level, rested.code) == (0, "stage_in_transition")
        assert scene.text("a") == "go on"

    def test_a_job_that_comes_while_it_sleeps_fails(self) -> None:
        scene = Scene(sleep_levels=(2,))
        scene.then = [[Open("a", word("hi"))]]
        scene.run(Sleep(2))
        assert (scene.end("a").outcome, scene.end("a").code) == (FAILED, "stage_asleep")
        assert "open a" not in scene.runner.calls

    def test_one_that_starts_asleep_is_ready_and_loads_at_wake(self) -> None:
        scene = Scene(asleep=True)
        scene.then = [[Wake()], [Open("a", word("hi"))]]
        scene.run()
        assert scene.reports[0].messages == [Ready(took_s=0.0, level=2)]
        assert scene.runner.calls[0] == "warm_up"
        assert scene.text("a") == "hi"


class BeatRunner(EchoRunner):
    """Counts a frame for each of its steps."""

    holds = 4

    def counted(self) -> FrameCounts:
        return FrameCounts(frames=len(self.batches))


class TestBeat:
    def test_what_it_holds_is_told_when_it_is_ready(self) -> None:
        scene = Scene(BeatRunner())
        scene.run()
        assert scene.reports[0].messages == [Ready(took_s=0.0, holds=4)]

    def test_what_it_counts_is_told_now_and_then_and_all_of_it_in_the_end(self) -> None:
        scene = Scene(BeatRunner())
        messages = [Append("a", word(letter)) for letter in "abcdef"]
        later = [Append("a", word("g")), Append("a", word("h")), Finish("a")]
        scene.then = [lambda: scene.clock.advance(COUNT_EVERY_S), later]
        scene.run(stream("a"), *messages)
        told = [each.counts.frames for each in scene.said if isinstance(each, Counted)]
        assert sum(told) == len(scene.runner.batches) == 8
        assert len(told) < 8


class TestHeldWork:
    def test_a_job_stays_where_it_is_until_the_work_goes_on(self) -> None:
        scene = Scene(EchoRunner(max_batch=1))
        inputs = [Append("a", word("two ")), Append("a", word("three")), Finish("a")]
        scene.then = [[Pause(on=True)], [*inputs, Pause(on=True)], [Pause(on=False)]]
        scene.run(stream("a"), Append("a", word("one ")))
        order = [type(each) for each in scene.said]
        assert order == [JobOutput, Paused, Paused, JobOutput, JobOutput, JobEnded]
        assert scene.text("a") == "one two three"
        assert scene.runner.calls == ["warm_up", "open a", "close a"]

    def test_a_cancel_is_heard_meanwhile(self) -> None:
        scene = Scene()
        scene.then = [[Pause(on=True)], [Append("a", word("x")), Cancel("a"), Pause(on=True)]]
        scene.run(stream("a"))
        assert scene.said == [Paused(), JobEnded("a", CANCELLED), Paused()]
        assert scene.runner.batches == []
