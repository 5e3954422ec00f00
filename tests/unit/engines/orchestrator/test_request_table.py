from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from duologue.core.errors import EngineError
from duologue.core.fence import SESSION_LANE, Fence, Lane
from duologue.engines.edges import Ahead
from duologue.engines.messages import Append, Cancel, Finish, Grant, Open
from duologue.engines.orchestrator.request_table import (
    Deliver,
    Drop,
    Effect,
    KillWorker,
    RequestTable,
    ToStage,
)
from duologue.engines.payloads import AudioChunk, TextDelta
from duologue.engines.pipeline import Pipeline, StageSpec
from duologue.engines.ports import Ended, Outcome, Output, Request

FENCE = Fence("session", SESSION_LANE, 2)
OTHER_FENCE = Fence("session", Lane("response_1"), 0)
GRACE_S = 5.0

ONE = Pipeline(name="one", stages=(StageSpec(name="one", runner="script"),))
TWO = Pipeline(
    name="two",
    stages=(
        StageSpec(name="words", runner="script", credit=4, edge="text_only"),
        StageSpec(name="tones", runner="tone"),
    ),
)


@pytest.fixture
def table() -> RequestTable:
    return RequestTable(cancel_grace_s=GRACE_S)


def request(request_id: str = "r", **fields: object) -> Request:
    return Request(request_id, "one", FENCE, **fields)


def end(
    table: RequestTable, stage: str, outcome: Outcome = Outcome.COMPLETED, code: str = ""
) -> Sequence[Effect]:
    return list(table.on_ended(stage, "r", outcome, code, "", 0.0))


def ended(outcome: Outcome, code: str = "", message: str = "") -> Deliver:
    return Deliver(Ended("r", FENCE, outcome, code, message))


class TestOneStage:
    def test_a_request_opens_its_job_with_what_it_brings(self, table: RequestTable) -> None:
        effects = table.submit(request(first=TextDelta("hi"), credit=7), ONE)
        opening = Open("r", TextDelta("hi"), input_ended=True, credit=7, taken_at_once=False)
        assert effects == [ToStage("one", opening)]

    def test_a_stream_hands_on_its_appends_and_its_end(self, table: RequestTable) -> None:
        (opening,) = table.submit(request(more_input=True), ONE)
        assert opening == ToStage("one", Open("r", None, input_ended=False, credit=None))
        append = ToStage("one", Append("r", TextDelta("a")))
        assert list(table.append("r", TextDelta("a"))) == [append]
        assert list(table.finish_input("r")) == [ToStage("one", Finish("r"))]

    def test_input_after_the_end_of_input_is_dropped(self, table: RequestTable) -> None:
        table.submit(request(first=TextDelta("hi")), ONE)
        assert list(table.append("r", TextDelta("a"))) == []
        assert list(table.finish_input("r")) == []

    def test_outputs_are_delivered_under_the_fence_of_the_request(
        self, table: RequestTable
    ) -> None:
        table.submit(request(), ONE)
        effects = list(table.on_output("one", "r", TextDelta("a")))
        assert effects == [Deliver(Output("r", FENCE, TextDelta("a")))]

    def test_the_end_of_the_stage_is_the_end_of_the_request(self, table: RequestTable) -> None:
        table.submit(request(), ONE)
        assert end(table, "one") == [ended(Outcome.COMPLETED)]
        assert "r" not in table

    def test_a_failure_keeps_its_code(self, table: RequestTable) -> None:
        table.submit(request(), ONE)
        effects = list(table.on_ended("one", "r", Outcome.FAILED, "out_of_memory", "no room", 0.0))
        assert effects == [ended(Outcome.FAILED, "out_of_memory", "no room")]
        assert len(table) == 0

    def test_an_id_can_be_used_once_at_a_time(self, table: RequestTable) -> None:
        table.submit(request(), ONE)
        with pytest.raises(EngineError, match="r is running"):
            table.submit(request(), ONE)
        end(table, "one")
        table.submit(request(), ONE)

    def test_what_the_first_stage_has_taken_concerns_nobody(self, table: RequestTable) -> None:
        table.submit(request(more_input=True), TWO)
        table.append("r", TextDelta("a"))
        assert list(table.on_taken("two.words", "r", 1)) == []

    def test_a_new_fence_is_on_what_is_delivered_from_then_on(self, table: RequestTable) -> None:
        table.submit(request(), ONE)
        table.on_output("one", "r", TextDelta("a"))
        table.refence("r", OTHER_FENCE)
        effects = list(table.on_output("one", "r", TextDelta("b")))
        assert effects == [Deliver(Output("r", OTHER_FENCE, TextDelta("b")))]
        assert end(table, "one") == [Deliver(Ended("r", OTHER_FENCE, Outcome.COMPLETED))]

    def test_a_new_fence_for_what_is_not_there_is_nothing(self, table: RequestTable) -> None:
        table.refence("r", OTHER_FENCE)
        table.submit(request(), ONE)
        assert end(table, "one") == [ended(Outcome.COMPLETED)]

    def test_a_grant_goes_to_the_last_stage(self, table: RequestTable) -> None:
        table.submit(request(credit=1), TWO)
        assert list(table.grant("r", 5)) == [ToStage("two.tones", Grant("r", 5))]

    def test_a_grant_after_the_end_is_normal_life(self, table: RequestTable) -> None:
        assert list(table.grant("r", 5)) == []


class TestCancel:
    def test_its_end_carries_a_fence_that_came_after_it(self, table: RequestTable) -> None:
        table.submit(request(), ONE)
        table.cancel("r", 1.0)
        table.refence("r", OTHER_FENCE)
        effects = end(table, "one", Outcome.CANCELLED)
        assert effects == [Deliver(Ended("r", OTHER_FENCE, Outcome.CANCELLED))]

    def test_it_is_sent_once_and_the_end_follows_the_acknowledgement(
        self, table: RequestTable
    ) -> None:
        table.submit(request(), ONE)
        assert list(table.cancel("r", 1.0)) == [ToStage("one", Cancel("r"))]
        assert list(table.cancel("r", 1.1)) == []
        assert end(table, "one", Outcome.CANCELLED) == [ended(Outcome.CANCELLED)]

    def test_a_completion_that_crossed_it_acknowledges_as_well(self, table: RequestTable) -> None:
        table.submit(request(), ONE)
        table.cancel("r", 1.0)
        assert end(table, "one", Outcome.COMPLETED) == [ended(Outcome.CANCELLED)]

    def test_outputs_after_it_are_dropped_and_counted(self, table: RequestTable) -> None:
        table.submit(request(), ONE)
        table.cancel("r", 1.0)
        assert list(table.on_output("one", "r", TextDelta("late"))) == [Drop("one")]

    def test_appends_and_grants_after_it_go_nowhere(self, table: RequestTable) -> None:
        table.submit(request(more_input=True, credit=1), ONE)
        table.cancel("r", 1.0)
        assert list(table.append("r", TextDelta("a"))) == []
        assert list(table.grant("r", 1)) == []

    def test_one_that_matches_nothing_is_nothing(self, table: RequestTable) -> None:
        assert list(table.cancel("nobody", 1.0)) == []

    def test_a_worker_that_does_not_acknowledge_is_killed_after_the_grace(
        self, table: RequestTable
    ) -> None:
        table.submit(request(), ONE)
        table.cancel("r", 1.0)
        assert table.next_deadline() == 1.0 + GRACE_S
        assert list(table.on_timer(1.0 + GRACE_S - 0.01)) == []
        assert list(table.on_timer(1.0 + GRACE_S)) == [KillWorker("one", "r")]
        assert table.next_deadline() is None
        assert end(table, "one", Outcome.FAILED, "replica_lost") == [ended(Outcome.CANCELLED)]


class TestDeadline:
    def test_a_request_without_an_answer_fails_at_once(self, table: RequestTable) -> None:
        table.submit(request(deadline_s=10.0), ONE)
        assert table.next_deadline() == 10.0
        cancel, told = table.on_timer(10.0)
        assert cancel == ToStage("one", Cancel("r"))
        assert isinstance(told, Deliver)
        assert isinstance(told.event, Ended)
        assert (told.event.outcome, told.event.code) == (Outcome.FAILED, "stage_timeout")

    def test_it_stays_in_the_table_until_its_stage_acknowledges(self, table: RequestTable) -> None:
        table.submit(request(deadline_s=10.0), ONE)
        table.on_timer(10.0)
        assert "r" in table
        assert list(table.on_timer(10.0 + GRACE_S)) == [KillWorker("one", "r")]
        assert end(table, "one", Outcome.FAILED, "replica_lost") == []
        assert "r" not in table

    def test_a_cancel_after_the_end_was_told_matches_nothing(self, table: RequestTable) -> None:
        table.submit(request(deadline_s=10.0), ONE)
        table.on_timer(10.0)
        assert list(table.cancel("r", 10.1)) == []

    def test_that_of_a_request_which_has_ended_is_forgotten(self, table: RequestTable) -> None:
        table.submit(request(deadline_s=10.0), ONE)
        end(table, "one")
        assert table.next_deadline() is None
        assert list(table.on_timer(11.0)) == []

    def test_many_short_requests_leave_no_deadlines_behind(self, table: RequestTable) -> None:
        for number in range(1000):
            table.submit(request(deadline_s=1e6 + number), ONE)
            end(table, "one")
        assert len(table._due) <= 64 + 2

    def test_the_earliest_comes_first(self, table: RequestTable) -> None:
        for number in (3.0, 1.0, 2.0):
            table.submit(request(f"r{number}", deadline_s=number), ONE)
        assert table.next_deadline() == 1.0
        assert any("r1.0" in str(effect) for effect in table.on_timer(5.0))
        assert table.next_deadline() == 2.0


class TestTwoStages:
    def test_both_are_opened_at_once(self, table: RequestTable) -> None:
        first, second = table.submit(request(first=TextDelta("hi"), credit=300), TWO)
        assert first == ToStage("two.words", Open("r", TextDelta("hi"), True, 4, False))
        assert second == ToStage("two.tones", Open("r", None, False, 300, True))

    def test_outputs_of_the_first_are_inputs_of_the_second(self, table: RequestTable) -> None:
        table.submit(request(), TWO)
        effects = list(table.on_output("two.words", "r", TextDelta("hi")))
        assert effects == [ToStage("two.tones", Append("r", TextDelta("hi")))]
        effects = list(table.on_output("two.tones", "r", TextDelta("tone")))
        assert effects == [Deliver(Output("r", FENCE, TextDelta("tone")))]

    def test_the_end_of_the_first_is_the_end_of_the_seconds_input(
        self, table: RequestTable
    ) -> None:
        table.submit(request(), TWO)
        assert end(table, "two.words") == [ToStage("two.tones", Finish("r"))]
        assert end(table, "two.tones") == [ended(Outcome.COMPLETED)]

    def test_what_the_second_has_taken_is_granted_to_the_first(self, table: RequestTable) -> None:
        table.submit(request(), TWO)
        for word in ("a", "b", "c"):
            table.on_output("two.words", "r", TextDelta(word))
        assert list(table.on_taken("two.tones", "r", 2)) == [ToStage("two.words", Grant("r", 2))]
        assert list(table.on_taken("two.tones", "r", 1)) == [ToStage("two.words", Grant("r", 1))]

    def test_an_output_that_becomes_no_input_is_granted_back_at_once(
        self, table: RequestTable
    ) -> None:
        table.submit(request(), TWO)
        effects = list(table.on_output("two.words", "r", TextDelta("  ")))
        assert effects == [ToStage("two.words", Grant("r", 1))]

    def test_an_output_that_became_several_inputs_is_granted_back_with_the_last(
        self,
    ) -> None:
        table = RequestTable(GRACE_S, edges={"text_only": lambda payload: (payload, payload)})
        table.submit(request(), TWO)
        assert len(table.on_output("two.words", "r", TextDelta("a"))) == 2
        assert list(table.on_taken("two.tones", "r", 1)) == []
        assert list(table.on_taken("two.tones", "r", 1)) == [ToStage("two.words", Grant("r", 1))]

    def test_what_goes_ahead_is_delivered_at_once_and_charged_to_the_last_stage(self) -> None:
        chunk = AudioChunk(bytes(4800), 24_000)
        table = RequestTable(GRACE_S, edges={"text_only": Ahead})
        table.submit(request(credit=300), TWO)
        assert list(table.on_output("two.words", "r", chunk)) == [
            ToStage("two.words", Grant("r", 100)),
            ToStage("two.tones", Grant("r", -100)),
            Deliver(Output("r", FENCE, chunk)),
        ]

    def test_what_goes_ahead_moves_no_credit_where_there_is_none(self) -> None:
        table = RequestTable(GRACE_S, edges={"text_only": Ahead})
        first, second = (msgspec.structs.replace(stage, credit=None) for stage in TWO.stages)
        table.submit(request(), Pipeline(name="two", stages=(first, second)))
        effects = list(table.on_output("two.words", "r", TextDelta("a")))
        assert effects == [Deliver(Output("r", FENCE, TextDelta("a")))]

    def test_a_stage_without_a_bound_is_granted_nothing(self, table: RequestTable) -> None:
        first, second = (msgspec.structs.replace(stage, credit=None) for stage in TWO.stages)
        effects = table.submit(request(), Pipeline(name="two", stages=(first, second)))
        assert effects[1] == ToStage("two.tones", Open("r", None, False, None, False))
        effects = list(table.on_output("two.words", "r", TextDelta("a")))
        assert effects == [ToStage("two.tones", Append("r", TextDelta("a")))]
        assert list(table.on_taken("two.tones", "r", 1)) == []

    def test_news_that_crossed_a_cancel_grants_nothing(self, table: RequestTable) -> None:
        table.submit(request(), TWO)
        table.on_output("two.words", "r", TextDelta("a"))
        table.cancel("r", 0.0)
        assert list(table.on_taken("two.tones", "r", 1)) == []

    def test_a_cancel_reaches_both_and_waits_for_both(self, table: RequestTable) -> None:
        table.submit(request(), TWO)
        assert list(table.cancel("r", 0.0)) == [
            ToStage("two.words", Cancel("r")),
            ToStage("two.tones", Cancel("r")),
        ]
        assert end(table, "two.tones", Outcome.CANCELLED) == []
        assert end(table, "two.words", Outcome.CANCELLED) == [ended(Outcome.CANCELLED)]

    def test_a_failure_of_one_cancels_the_other_and_is_told_at_once(
        self, table: RequestTable
    ) -> None:
        table.submit(request(), TWO)
        effects = end(table, "two.words", Outcome.FAILED, "stage_failed")
        assert effects == [
            ToStage("two.tones", Cancel("r")),
            ended(Outcome.FAILED, "stage_failed"),
        ]
        assert end(table, "two.tones", Outcome.CANCELLED) == []
        assert len(table) == 0

    def test_a_last_stage_that_is_done_early_stops_the_first(self, table: RequestTable) -> None:
        table.submit(request(), TWO)
        assert end(table, "two.tones") == [ToStage("two.words", Cancel("r"))]
        assert end(table, "two.words", Outcome.CANCELLED) == [ended(Outcome.COMPLETED)]

    def test_only_the_stage_that_hangs_is_killed(self, table: RequestTable) -> None:
        table.submit(request(), TWO)
        table.cancel("r", 0.0)
        end(table, "two.words", Outcome.CANCELLED)
        assert list(table.on_timer(GRACE_S)) == [KillWorker("two.tones", "r")]


class TestFail:
    def test_a_request_can_be_ended_from_outside(self, table: RequestTable) -> None:
        table.submit(request(), ONE)
        effects = list(table.fail("r", EngineError("the engine stops", code="stopped"), 0.0))
        assert effects == [
            ToStage("one", Cancel("r")),
            ended(Outcome.FAILED, "stopped", "the engine stops"),
        ]
        assert list(table.fail("r", EngineError("again"), 0.0)) == []
        assert table.request_ids() == ["r"]
