"""The engine work of one session: opened, fed, cancelled; late output goes nowhere."""

from __future__ import annotations

from duologue.core.fence import INPUT_LANE, Fence, Lane
from duologue.engines.payloads import TextDelta
from duologue.engines.ports import Ended, Outcome, Output, Request
from duologue.sessions.effects import (
    AppendInput,
    CancelRequest,
    FinishInput,
    GrantCredit,
    RefenceRequest,
    SubmitRequest,
)
from duologue.sessions.streams import Owner, Stream, Streams

LANE = Lane("resp_1")


def make_streams() -> Streams:
    streams = Streams("s")
    streams.epochs.open(LANE)
    return streams


def output(stream: Stream, streams: Streams) -> Output:
    return Output(stream.request_id, streams.epochs.fence(stream.lane), TextDelta("x"))


def test_each_request_has_an_id_of_its_own_and_the_fence_of_its_lane() -> None:
    streams = make_streams()
    streams.open(Owner.DETECTOR, "", "vad", more_input=True)
    first = TextDelta("hello")
    streams.open(Owner.PLUGIN, "llm", "llm", lane=LANE, first=first, credit=5)
    assert streams.take_effects() == [
        SubmitRequest(Request("s.1", "vad", Fence("s", INPUT_LANE, 0), None, True)),
        SubmitRequest(Request("s.2", "llm", Fence("s", LANE, 0), first, False, 5)),
    ]
    assert streams.take_effects() == ()
    assert streams.running == 2


def test_what_is_asked_of_a_stream_goes_to_its_request_in_order() -> None:
    streams = make_streams()
    stream = streams.open(Owner.PLUGIN, "tts", "tts")
    streams.append(stream, TextDelta("a"))
    streams.grant(stream, 200)
    streams.finish(stream)
    assert list(streams.take_effects())[1:] == [
        AppendInput("s.1", TextDelta("a")),
        GrantCredit("s.1", 200),
        FinishInput("s.1"),
    ]


def test_a_key_has_one_stream_and_a_new_one_replaces_the_old_one() -> None:
    streams = make_streams()
    old = streams.open(Owner.PLUGIN, "tts", "tts")
    late = output(old, streams)
    new = streams.open(Owner.PLUGIN, "tts", "tts")
    assert [type(effect) for effect in streams.take_effects()] == [
        SubmitRequest,
        CancelRequest,
        SubmitRequest,
    ]
    assert streams.find(Owner.PLUGIN, "tts") is new
    assert streams.accept(late) is None


def test_owners_may_use_the_same_key() -> None:
    streams = make_streams()
    detector = streams.open(Owner.DETECTOR, "", "vad")
    judge = streams.open(Owner.END_OF_TURN, "", "end_of_turn")
    assert streams.find(Owner.DETECTOR, "") is detector
    assert streams.find(Owner.END_OF_TURN, "") is judge


def test_output_of_a_running_stream_is_accepted() -> None:
    streams = make_streams()
    stream = streams.open(Owner.PLUGIN, "llm", "llm", lane=LANE)
    assert streams.accept(output(stream, streams)) is stream
    assert streams.stale_dropped == 0


def test_late_output_of_a_cancelled_stream_goes_nowhere_and_is_counted() -> None:
    streams = make_streams()
    stream = streams.open(Owner.PLUGIN, "llm", "llm", lane=LANE)
    late = output(stream, streams)
    streams.cancel(Owner.PLUGIN, "llm")
    assert streams.accept(late) is None
    assert streams.stale_dropped == 1


def test_output_under_an_old_epoch_goes_nowhere_though_the_stream_runs() -> None:
    streams = make_streams()
    stream = streams.open(Owner.PLUGIN, "llm", "llm", lane=LANE)
    late = output(stream, streams)
    streams.epochs.advance(LANE)
    assert streams.accept(late) is None
    assert streams.stale_dropped == 1
    assert streams.accept(output(stream, streams)) is stream


def test_the_last_word_of_a_cancelled_request_is_no_stale_output() -> None:
    streams = make_streams()
    stream = streams.open(Owner.PLUGIN, "llm", "llm")
    streams.cancel(Owner.PLUGIN, "llm")
    ended = Ended(stream.request_id, streams.epochs.fence(INPUT_LANE), Outcome.CANCELLED)
    assert streams.accept(ended) is None
    assert streams.stale_dropped == 0


def test_a_lane_is_cancelled_as_a_whole_and_alone() -> None:
    streams = make_streams()
    standing = streams.open(Owner.PLUGIN, "spec", "llm")
    for key in ("llm", "tts"):
        streams.open(Owner.PLUGIN, key, key, lane=LANE)
    streams.take_effects()
    streams.cancel_lane(LANE)
    assert streams.take_effects() == [CancelRequest("s.2"), CancelRequest("s.3")]
    assert streams.of_lane(LANE) == []
    assert streams.of_lane(INPUT_LANE) == [standing]


def test_a_stream_that_was_given_to_a_response_is_cancelled_with_it() -> None:
    streams = make_streams()
    speculation = streams.open(Owner.PLUGIN, "spec", "llm")
    speculation.lane = LANE
    assert streams.accept(Output("s.1", Fence("s", INPUT_LANE, 0), TextDelta("x"))) is speculation
    streams.cancel_lane(LANE)
    assert list(streams.take_effects())[-1] == CancelRequest("s.1")


def test_the_end_of_the_session_cancels_everything() -> None:
    streams = make_streams()
    streams.open(Owner.DETECTOR, "", "vad")
    streams.open(Owner.PLUGIN, "llm", "llm", lane=LANE)
    streams.take_effects()
    streams.cancel_all()
    assert streams.take_effects() == [CancelRequest("s.1"), CancelRequest("s.2")]
    assert streams.running == 0


def test_an_ended_stream_needs_no_cancel_and_frees_its_key() -> None:
    streams = make_streams()
    stream = streams.open(Owner.PLUGIN, "llm", "llm")
    streams.take_effects()
    streams.ended(stream)
    streams.cancel(Owner.PLUGIN, "llm")
    assert streams.take_effects() == ()
    assert streams.find(Owner.PLUGIN, "llm") is None


def test_an_interrupted_lane_goes_on_under_a_new_epoch() -> None:
    streams = make_streams()
    stream = streams.open(Owner.PLUGIN, "llm", "llm", lane=LANE)
    late = output(stream, streams)
    streams.take_effects()
    streams.interrupt_lane(LANE)
    assert streams.take_effects() == [CancelRequest("s.1")]
    assert not streams.epochs.is_current(late.fence)
    assert streams.epochs.fence(LANE).epoch == 1


def test_a_closed_lane_takes_nothing_more_and_can_be_opened_again() -> None:
    streams = make_streams()
    stream = streams.open(Owner.PLUGIN, "llm", "llm", lane=LANE)
    streams.close_lane(LANE)
    assert streams.of_lane(LANE) == []
    assert not streams.epochs.is_open(LANE)
    streams.open_lane(LANE)
    assert streams.epochs.is_open(LANE)
    assert streams.find(Owner.PLUGIN, stream.key) is None


def test_an_adopted_stream_gets_the_fence_of_its_new_lane() -> None:
    streams = make_streams()
    speculation = streams.open(Owner.PLUGIN, "spec", "llm")
    streams.take_effects()
    streams.adopt(speculation, LANE)
    assert streams.take_effects() == [RefenceRequest("s.1", Fence("s", LANE, 0))]
    assert streams.of_lane(LANE) == [speculation]


def test_all_work_of_one_owner_is_stopped_at_once() -> None:
    streams = make_streams()
    for key in ("llm", "tts"):
        streams.open(Owner.PLUGIN, key, key)
    streams.open(Owner.DETECTOR, "", "vad")
    streams.cancel_of(Owner.PLUGIN)
    assert list(streams.take_effects())[3:] == [CancelRequest("s.1"), CancelRequest("s.2")]
    assert streams.find(Owner.DETECTOR, "") is not None
