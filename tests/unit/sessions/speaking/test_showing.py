"""Items of a response come to the wire one after the other, each in its turn."""

from __future__ import annotations

import pytest

from duologue.core.errors import PluginError
from duologue.engines.payloads import SpeechMark
from duologue.protocol.events import Event, ItemAdded, ItemDeleted, ItemDone, RateLimitsUpdated
from duologue.protocol.items import FunctionCallItem, InputText, MessageItem
from duologue.protocol.response_events import (
    AudioDelta,
    AudioDone,
    AudioTranscriptDelta,
    AudioTranscriptDone,
    ContentPartAdded,
    ContentPartDone,
    FunctionCallArgumentsDelta,
    FunctionCallArgumentsDone,
    OutputItemAdded,
    OutputItemDone,
    ResponseCreated,
    ResponseDone,
)
from duologue.sessions.speaking.output_buffer import OutputLimits, OutputOverflow
from duologue.sessions.speaking.pacing import Pace
from duologue.sessions.speaking.response import Response
from tests.unit.sessions.speaking_bench import MS, Bench, T, done, pcm, pieces

MESSAGE_OPENS = [OutputItemAdded, ItemAdded, ContentPartAdded]
MESSAGE_CLOSES = [AudioDone, AudioTranscriptDone, ContentPartDone, ItemDone, OutputItemDone]
CALL = [
    OutputItemAdded,
    ItemAdded,
    FunctionCallArgumentsDelta,
    FunctionCallArgumentsDone,
    ItemDone,
    OutputItemDone,
]
END = [ResponseDone, RateLimitsUpdated]


def kinds(events: list[Event]) -> list[type]:
    return [type(event) for event in events]


def speak(bench: Bench, response: Response, text: str, ms: int = 300) -> None:
    bench.speaking.say_text(response, text, T)
    bench.speaking.say_audio(response, pcm(ms), (), T)


def call(bench: Bench, response: Response, key: str = "k", arguments: str = "{}") -> None:
    bench.speaking.call(response, key, "look", arguments, True, T)


def finish(bench: Bench, response: Response) -> None:
    bench.speaking.generated(response, "completed", "", None)


def test_a_call_alone_is_a_response() -> None:
    bench = Bench()
    response = bench.begin()
    call(bench, response, arguments='{"at":1}')
    finish(bench, response)
    events = bench.pull()
    assert kinds(events) == [ResponseCreated, *CALL, *END]
    (item,) = done(events).response.output
    assert isinstance(item, FunctionCallItem)
    assert (item.status, item.name, item.arguments) == ("completed", "look", '{"at":1}')
    assert len(item.call_id) <= 32
    (view, pending) = bench.history.view()
    assert (view.call is not None, pending.text) == (True, None)


def test_speech_then_a_call_then_speech_are_three_items_in_order() -> None:
    bench = Bench(Pace(lead_ms=None, merge_ms=0))
    response = bench.begin()
    speak(bench, response, "One moment.")
    call(bench, response)
    speak(bench, response, " Done.")
    finish(bench, response)
    events = bench.pull()
    spoken = [*MESSAGE_OPENS, AudioTranscriptDelta, AudioDelta, AudioDelta, *MESSAGE_CLOSES]
    assert kinds(events) == [ResponseCreated, *spoken, *CALL, *spoken, *END]
    indices = [event.output_index for event in events if isinstance(event, OutputItemAdded)]
    assert indices == [0, 1, 2]
    for event in events:
        if isinstance(event, AudioDelta | AudioTranscriptDelta):
            assert event.item_id == response.items[event.output_index].id
    added = [event for event in events if isinstance(event, ItemAdded)]
    assert [event.previous_item_id for event in added] == [
        None,
        response.items[0].id,
        response.items[1].id,
    ]


def test_a_call_waits_until_the_speech_before_it_is_sent() -> None:
    bench = Bench(Pace(lead_ms=500))
    response = bench.begin()
    speak(bench, response, "One moment.", 2000)
    call(bench, response)
    finish(bench, response)
    assert not any(isinstance(e, FunctionCallArgumentsDone) for e in bench.pull())
    assert len(bench.history) == 1
    now, events = T, []
    while bench.speaking.pacing.paced_until is not None:
        now = bench.speaking.pacing.paced_until
        events = bench.pull(now)
    assert kinds(events)[-len(CALL) - 2 :] == [*CALL, *END]


def test_two_calls_follow_each_other() -> None:
    bench = Bench()
    response = bench.begin()
    call(bench, response, "a")
    call(bench, response, "b")
    finish(bench, response)
    assert kinds(bench.pull()) == [ResponseCreated, *CALL, *CALL, *END]
    first, second = response.calls
    assert first.call_id != second.call_id


def test_a_call_without_arguments_ends_its_response_too() -> None:
    bench = Bench()
    response = bench.begin()
    speak(bench, response, "One.", 0)
    call(bench, response, arguments="")
    finish(bench, response)
    assert kinds(bench.pull())[-7:] == [
        OutputItemAdded,
        ItemAdded,
        FunctionCallArgumentsDone,
        ItemDone,
        OutputItemDone,
        *END,
    ]


def test_arguments_may_come_in_pieces_and_are_shown_as_they_come() -> None:
    bench = Bench()
    response = bench.begin()
    bench.speaking.call(response, "k", "look", '{"at"', False, T)
    assert kinds(bench.pull())[-1] is FunctionCallArgumentsDelta
    bench.speaking.call(response, "k", "look", ":1}", True, T)
    finish(bench, response)
    events = bench.pull()
    (whole,) = [event for event in events if isinstance(event, FunctionCallArgumentsDone)]
    assert whole.arguments == '{"at":1}'


def test_a_call_that_is_over_cannot_go_on() -> None:
    bench = Bench()
    response = bench.begin()
    call(bench, response, "a")
    with pytest.raises(PluginError, match="call 'a', which is over"):
        call(bench, response, "a")
    call(bench, response, "b")
    with pytest.raises(PluginError, match="call 'a', which is over"):
        call(bench, response, "a")


def test_an_interruption_takes_back_the_call_that_nobody_has_seen() -> None:
    bench = Bench(Pace(lead_ms=500))
    response = bench.begin()
    speak(bench, response, "One moment.", 2000)
    call(bench, response)
    bench.pull()
    cut = bench.speaking.cut_off(response, "cancelled", "turn_detected", T + 0.2)
    assert [heard for _, heard in cut] == [200 * MS]
    events = bench.pull(T + 1)
    assert kinds(events) == [*MESSAGE_CLOSES, *END]
    assert len(done(events).response.output) == 1
    assert len(bench.history) == 1
    assert bench.speaking.buffer.held_bytes == 0


def test_an_interruption_keeps_the_call_that_was_shown() -> None:
    bench = Bench(Pace(lead_ms=500, merge_ms=0))
    response = bench.begin()
    call(bench, response)
    speak(bench, response, "Well.", 2000)
    bench.pull()
    cut = bench.speaking.cut_off(response, "cancelled", "turn_detected", T + 0.2)
    assert [message for message, _ in cut] == response.messages
    output = done(bench.pull(T + 1)).response.output
    assert [item.status for item in output] == ["completed", "incomplete"]


def test_a_message_that_was_heard_to_its_end_is_not_cut() -> None:
    bench = Bench(Pace(lead_ms=None, merge_ms=0))
    response = bench.begin()
    speak(bench, response, "One.", 200)
    call(bench, response)
    bench.pull()
    assert bench.speaking.cut_off(response, "cancelled", "turn_detected", T + 1) == []
    (first,) = response.messages
    assert first.spoken.cut_sample is None


def test_half_a_call_that_was_shown_is_incomplete() -> None:
    bench = Bench()
    response = bench.begin()
    bench.speaking.call(response, "k", "look", '{"at"', False, T)
    bench.pull()
    bench.speaking.call(response, "k", "look", ":", False, T)
    assert bench.speaking.cut_off(response, "cancelled", "client_cancelled", T) == []
    events = bench.pull()
    assert kinds(events)[0] is FunctionCallArgumentsDelta
    (item,) = done(events).response.output
    assert isinstance(item, FunctionCallItem)
    assert (item.status, item.arguments) == ("incomplete", '{"at":')
    assert bench.history.view() == ()


def test_marks_of_later_speech_are_its_own() -> None:
    bench = Bench(Pace(lead_ms=None, merge_ms=0))
    response = bench.begin()
    speak(bench, response, "One.", 200)
    call(bench, response)
    bench.speaking.say_audio(response, b"", (SpeechMark(4, 200 * MS),), T)
    bench.speaking.say_text(response, "Two three.", T)
    bench.speaking.say_audio(response, pcm(400), (SpeechMark(8, 300 * MS),), T)
    second = response.messages[1]
    assert second.spoken.marks == [SpeechMark(4, 100 * MS)]


def test_an_answer_out_of_band_calls_without_touching_the_conversation() -> None:
    bench = Bench()
    response = bench.begin(conversation="none")
    speak(bench, response, "One.", 0)
    call(bench, response)
    finish(bench, response)
    events = bench.pull()
    assert not any(isinstance(event, ItemAdded | ItemDone) for event in events)
    assert len(done(events).response.output) == 2
    assert len(bench.history) == 0


def test_room_is_made_for_each_item_as_it_is_shown() -> None:
    bench = Bench(max_items=2)
    for name in ("a", "b"):
        bench.history.add(MessageItem(id=name, role="user", content=(InputText(text=name),)))
    response = bench.begin()
    speak(bench, response, "One.", 0)
    call(bench, response)
    finish(bench, response)
    gone = [event.item_id for event in bench.pull() if isinstance(event, ItemDeleted)]
    assert gone == ["a", "b"]


def test_calls_that_do_not_fit_fail_their_response() -> None:
    bench = Bench(limits=OutputLimits(events=8))
    response = bench.begin()
    speak(bench, response, "One.", 200)
    call(bench, response, "a")
    with pytest.raises(OutputOverflow, match="8 events wait"):
        call(bench, response, "b")
    bench.speaking.cut_off(response, "failed", "output_overflow", T)
    events = bench.pull()
    assert pieces(events) == []
    assert len(done(events).response.output) == 1
    assert bench.speaking.buffer.count_held() == (0, 0)
