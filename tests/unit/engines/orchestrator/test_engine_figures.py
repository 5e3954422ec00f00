"""What an engine counts, measures and logs of its stages."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from duologue.core.errors import CapacityError
from duologue.engines.messages import JobEnded, JobOutput
from duologue.engines.payloads import AudioChunk, TextDelta
from tests.unit.engines.orchestrator.engine_scene import CANCELLED, COMPLETED, FAILED, scene


class TestFigures:
    async def test_what_is_refused_fails_or_is_lost_is_counted_by_stage(self) -> None:
        async with scene() as here:
            here.submit("a", "speech")
            with pytest.raises(CapacityError):
                here.submit("b", "speech")
            assert here.metrics.stage_refused["speech.tones"].value == 1
            here.say("speech.words", JobEnded("a", FAILED, "stage_failed", "bad luck"))
            assert here.metrics.stage_failed["speech.words"].value == 1
            here.end("speech.tones", "a", CANCELLED)
            assert here.metrics.stage_failed["speech.tones"].value == 0
            here.worker("llm").lose()
            assert here.metrics.worker_lost["llm"].value == 1
        assert here.metrics.worker_lost["speech.words"].value == 0, "those left when told to"

    async def test_a_failure_is_logged_in_our_words_and_what_others_said_is_private(self) -> None:
        async with scene() as here:
            here.submit("a", "speech")
            with capture_logs() as logs:
                here.say("speech.words", JobEnded("a", FAILED, "upstream_failed", "no", "hello"))
        assert logs == [
            {
                "event": "stage_failed",
                "log_level": "warning",
                "stage": "speech.words",
                "code": "upstream_failed",
                "reason": "no",
                "pii.quote": "hello",
            }
        ]

    async def test_too_much_input_is_a_failure_of_the_stage(self) -> None:
        async with scene() as here:
            here.submit("a", more_input=True)
            here.engine.append("a", AudioChunk(bytes(2**25), 16_000))
            assert here.metrics.stage_failed["llm"].value == 1
            here.end("llm", "a", CANCELLED)

    async def test_steps_queues_and_late_outputs_are_measured_by_stage(self) -> None:
        async with scene() as here:
            here.submit("a")
            here.worker("llm").report(JobOutput("a", TextDelta("x")), step_s=0.03)
            here.engine.cancel("a")
            here.say("llm", JobOutput("a", TextDelta("late")))
            assert sum(here.metrics.stage_step["llm"].counts) == 1
            assert here.metrics.stage_step["llm"].sum == pytest.approx(0.03)
            assert sum(here.metrics.stage_queue["llm"].counts) == 1
            assert here.metrics.stale_output_dropped["llm"].value == 1
            here.end("llm", "a", CANCELLED)

    async def test_a_step_that_takes_longer_than_its_audio_lasts_is_counted(self) -> None:
        async with scene() as here:
            words = next(each for each in here.metrics.frame_deadline_missed if "words" in each[0])
            for step_s in (0.01, 0.02, 0.03):
                here.worker(words[0]).report(step_s=step_s)
            assert words[1].value == 1
            here.worker("llm").report(step_s=9.0)
            assert here.metrics.frame_deadline_missed["llm"].value == 0

    async def test_how_long_a_stage_takes_to_let_go_is_measured(self) -> None:
        async with scene() as here:
            here.submit("a")
            here.engine.cancel("a")
            here.engine.cancel("nobody")
            here.clock.advance(0.05)
            here.end("llm", "a", CANCELLED)
            cancel = here.metrics.stage_cancel["llm"]
            assert (sum(cancel.counts), cancel.sum) == (1, pytest.approx(0.05))
            here.submit("b")
            here.end("llm", "b", COMPLETED)
            assert sum(cancel.counts) == 1

    async def test_stats_show_every_stage(self) -> None:
        async with scene() as here:
            here.submit("a")
            stats = here.engine.stats()
            assert [stage.stage for stage in stats.stages] == [
                "llm",
                "speech.words",
                "speech.tones",
            ]
            assert stats.requests == 1
            assert stats.stages[0].busy == 1
