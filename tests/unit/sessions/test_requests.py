"""The engine work of one session: opened, fed, cancelled; late output goes nowhere."""

from __future__ import annotations

from duologue.core.fence import SESSION_LANE, Fence, Lane
from duologue.engines.payloads import AudioChunk, TextDelta
from duologue.engines.ports import Ended, Outcome, Output, Request
from duologue.sessions.effects import (
    AppendInput,
    CancelRequest,
    FinishInput,
    GrantCredit,
    RefenceRequest,
    SubmitRequest,
)
from duologue.sessions.requests import Asker, Requests, RunningRequest

LANE = Lane("resp_1")


def make_streams() -> Requests:
    requests = Requests("s")
    requests.epochs.open(LANE)
    return requests


def output(request: RunningRequest, requests: Requests) -> Output:
    return Output(request.request_id, requests.epochs.fence(request.lane), TextDelta("x"))


def test_each_request_has_an_id_of_its_own_and_the_fence_of_its_lane() -> None:
    requests = make_streams()
    requests.open(Asker.DETECTOR, "", "vad", more_input=True)
    first = TextDelta("hello")
    requests.open(Asker.PLUGIN, "llm", "llm", lane=LANE, first=first, credit=5)
    assert requests.take_effects() == [
        SubmitRequest(Request("s.1", "vad", Fence("s", SESSION_LANE, 0), None, True)),
        SubmitRequest(Request("s.2", "llm", Fence("s", LANE, 0), first, False, 5)),
    ]
    assert requests.take_effects() == ()
    assert requests.running == 2


def test_what_is_asked_of_a_stream_goes_to_its_request_in_order() -> None:
    requests = make_streams()
    request = requests.open(Asker.PLUGIN, "tts", "tts")
    requests.append(request, TextDelta("a"))
    requests.grant(request, 200)
    requests.finish(request)
    assert list(requests.take_effects())[1:] == [
        AppendInput("s.1", TextDelta("a")),
        GrantCredit("s.1", 200),
        FinishInput("s.1"),
    ]


def test_a_key_has_one_stream_and_a_new_one_replaces_the_old_one() -> None:
    requests = make_streams()
    old = requests.open(Asker.PLUGIN, "tts", "tts")
    late = output(old, requests)
    new = requests.open(Asker.PLUGIN, "tts", "tts")
    assert [type(effect) for effect in requests.take_effects()] == [
        SubmitRequest,
        CancelRequest,
        SubmitRequest,
    ]
    assert requests.find(Asker.PLUGIN, "tts") is new
    assert requests.accept(late) is None


def test_askers_may_use_the_same_key() -> None:
    requests = make_streams()
    detector = requests.open(Asker.DETECTOR, "", "vad")
    judge = requests.open(Asker.END_OF_TURN, "", "end_of_turn")
    assert requests.find(Asker.DETECTOR, "") is detector
    assert requests.find(Asker.END_OF_TURN, "") is judge


def test_output_of_a_running_stream_is_accepted() -> None:
    requests = make_streams()
    request = requests.open(Asker.PLUGIN, "llm", "llm", lane=LANE)
    assert requests.accept(output(request, requests)) is request
    assert requests.stale_dropped == 0


def test_late_output_of_a_cancelled_stream_goes_nowhere_and_is_counted() -> None:
    requests = make_streams()
    request = requests.open(Asker.PLUGIN, "llm", "llm", lane=LANE)
    late = output(request, requests)
    requests.cancel(Asker.PLUGIN, "llm")
    assert requests.accept(late) is None
    assert requests.stale_dropped == 1


def test_output_under_an_old_epoch_goes_nowhere_though_the_stream_runs() -> None:
    requests = make_streams()
    request = requests.open(Asker.PLUGIN, "llm", "llm", lane=LANE)
    late = output(request, requests)
    requests.epochs.advance(LANE)
    assert requests.accept(late) is None
    assert requests.stale_dropped == 1
    assert requests.accept(output(request, requests)) is request


def test_what_an_adopted_request_made_for_an_answer_that_was_cut_off_is_stale() -> None:
    requests = make_streams()
    request = requests.open(Asker.PLUGIN, "llm", "llm", lane=LANE)
    for_the_first = output(request, requests)
    requests.open_lane(Lane("resp_2"))
    requests.adopt(request, Lane("resp_2"))
    for_the_second = output(request, requests)
    assert requests.accept(for_the_first) is request
    requests.interrupt_lane(LANE)
    assert requests.accept(for_the_first) is None
    assert requests.accept(for_the_second) is request
    assert requests.stale_dropped == 1


def test_the_last_word_of_a_cancelled_request_is_no_stale_output() -> None:
    requests = make_streams()
    request = requests.open(Asker.PLUGIN, "llm", "llm")
    requests.cancel(Asker.PLUGIN, "llm")
    ended = Ended(request.request_id, requests.epochs.fence(SESSION_LANE), Outcome.CANCELLED)
    assert requests.accept(ended) is None
    assert requests.stale_dropped == 0


def test_a_lane_is_cancelled_as_a_whole_and_alone() -> None:
    requests = make_streams()
    standing = requests.open(Asker.PLUGIN, "spec", "llm")
    for key in ("llm", "tts"):
        requests.open(Asker.PLUGIN, key, key, lane=LANE)
    requests.take_effects()
    requests.cancel_lane(LANE)
    assert requests.take_effects() == [CancelRequest("s.2"), CancelRequest("s.3")]
    assert requests.of_lane(LANE) == []
    assert requests.of_lane(SESSION_LANE) == [standing]


def test_a_stream_that_was_given_to_a_response_is_cancelled_with_it() -> None:
    requests = make_streams()
    speculation = requests.open(Asker.PLUGIN, "spec", "llm")
    speculation.lane = LANE
    assert (
        requests.accept(Output("s.1", Fence("s", SESSION_LANE, 0), TextDelta("x"))) is speculation
    )
    requests.cancel_lane(LANE)
    assert list(requests.take_effects())[-1] == CancelRequest("s.1")


def test_a_request_speaks_once_it_has_made_audio() -> None:
    requests = make_streams()
    request = requests.open(Asker.PLUGIN, "tts", "tts", lane=LANE)
    requests.accept(output(request, requests))
    assert not request.speaks
    fence = requests.epochs.fence(LANE)
    requests.accept(Output(request.request_id, fence, AudioChunk(bytes(4), 24_000)))
    requests.accept(output(request, requests))
    assert request.speaks


def test_the_end_of_the_session_cancels_everything() -> None:
    requests = make_streams()
    requests.open(Asker.DETECTOR, "", "vad")
    requests.open(Asker.PLUGIN, "llm", "llm", lane=LANE)
    requests.take_effects()
    requests.cancel_all()
    assert requests.take_effects() == [CancelRequest("s.1"), CancelRequest("s.2")]
    assert requests.running == 0


def test_an_ended_stream_needs_no_cancel_and_frees_its_key() -> None:
    requests = make_streams()
    request = requests.open(Asker.PLUGIN, "llm", "llm")
    requests.take_effects()
    requests.ended(request)
    requests.cancel(Asker.PLUGIN, "llm")
    assert requests.take_effects() == ()
    assert requests.find(Asker.PLUGIN, "llm") is None


def test_an_interrupted_lane_goes_on_under_a_new_epoch() -> None:
    requests = make_streams()
    request = requests.open(Asker.PLUGIN, "llm", "llm", lane=LANE)
    late = output(request, requests)
    requests.take_effects()
    requests.interrupt_lane(LANE)
    assert requests.take_effects() == [CancelRequest("s.1")]
    assert not requests.epochs.is_current(late.fence)
    assert requests.epochs.fence(LANE).epoch == 1


def test_a_closed_lane_takes_nothing_more_and_can_be_opened_again() -> None:
    requests = make_streams()
    request = requests.open(Asker.PLUGIN, "llm", "llm", lane=LANE)
    requests.close_lane(LANE)
    assert requests.of_lane(LANE) == []
    assert not requests.epochs.is_open(LANE)
    requests.open_lane(LANE)
    assert requests.epochs.is_open(LANE)
    assert requests.find(Asker.PLUGIN, request.key) is None


def test_an_adopted_stream_gets_the_fence_of_its_new_lane() -> None:
    requests = make_streams()
    speculation = requests.open(Asker.PLUGIN, "spec", "llm")
    requests.take_effects()
    requests.adopt(speculation, LANE)
    assert requests.take_effects() == [RefenceRequest("s.1", Fence("s", LANE, 0))]
    assert requests.of_lane(LANE) == [speculation]


def test_all_requests_of_one_asker_are_stopped_at_once() -> None:
    requests = make_streams()
    for key in ("llm", "tts"):
        requests.open(Asker.PLUGIN, key, key)
    requests.open(Asker.DETECTOR, "", "vad")
    requests.cancel_of(Asker.PLUGIN)
    assert list(requests.take_effects())[3:] == [CancelRequest("s.1"), CancelRequest("s.2")]
    assert requests.find(Asker.DETECTOR, "") is not None
