"""How a response looks on the wire."""

from __future__ import annotations

import pytest

from duologue.codecs.encoder import OutputEncoder
from duologue.engines.payloads import TokenUsage
from duologue.protocol.audio_formats import PcmuFormat
from duologue.protocol.commands import ResponseParams
from duologue.protocol.errors import ERROR_TABLE, ErrorCode
from duologue.protocol.events import Event, ItemAdded, ItemDone, RateLimitsUpdated
from duologue.protocol.items import FunctionCallItem, MessageItem, OutputAudio, OutputText
from duologue.protocol.json_codec import decode_event, encode_event
from duologue.protocol.response_config import response_config
from duologue.protocol.response_events import (
    AudioDelta,
    AudioDone,
    AudioPart,
    AudioTranscriptDelta,
    AudioTranscriptDone,
    ContentPartAdded,
    ContentPartDone,
    FunctionCallArgumentsDelta,
    FunctionCallArgumentsDone,
    OutputItemAdded,
    OutputItemDone,
    OutputTextDelta,
    ResponseDone,
    TextDone,
    TextPart,
)
from duologue.protocol.response_resource import StatusDetails
from duologue.protocol.session_config import SessionConfig
from duologue.sessions.speaking.output_items import OutputCall, OutputMessage
from duologue.sessions.speaking.response import Response
from duologue.sessions.speaking.response_wire import (
    arguments_delta,
    audio_delta,
    closing_events,
    ending_events,
    finished_call,
    finished_message,
    opened_call,
    opened_message,
    opening_events,
    resource,
    text_delta,
)


def make_response(params: ResponseParams | None = None, status: str = "completed") -> Response:
    config = response_config(SessionConfig(output_format=PcmuFormat()), params or ResponseParams())
    response = Response("resp_1", config, 0.0, OutputEncoder(24000, PcmuFormat()))
    message = response.new_message("item_1")
    message.delivered_text = ["Hello ", "there."]
    message.wire = opened_message(message)
    response.items.append(message)
    response.shown = 1
    response.status = status
    return response


def message_of(response: Response) -> OutputMessage:
    (message,) = response.messages
    return message


def written(status: str = "completed") -> Response:
    return make_response(ResponseParams(output_modalities=("text",)), status)


def out_of_band() -> Response:
    return make_response(ResponseParams(conversation="none"))


def open_(response: Response, previous: str | None = "item_0") -> list[Event]:
    return list(opening_events(response, message_of(response), previous))


def close(response: Response) -> list[Event]:
    message = message_of(response)
    message.wire = finished_message(message, "completed")
    return [
        *closing_events(response, message, "item_0"),
        *ending_events(response, "conv_1"),
    ]


def done(response: Response) -> ResponseDone:
    (event,) = [
        event for event in ending_events(response, "conv_1") if isinstance(event, ResponseDone)
    ]
    return event


def test_a_spoken_answer_opens_and_closes_in_the_order_that_clients_need() -> None:
    response = make_response()
    opened, closed = open_(response), close(response)
    assert [type(event) for event in opened] == [OutputItemAdded, ItemAdded, ContentPartAdded]
    assert [type(event) for event in closed] == [
        AudioDone,
        AudioTranscriptDone,
        ContentPartDone,
        ItemDone,
        OutputItemDone,
        ResponseDone,
        RateLimitsUpdated,
    ]
    empty = MessageItem(id="item_1", role="assistant", status="in_progress")
    assert opened[1] == ItemAdded(previous_item_id="item_0", item=empty)
    whole = message_of(response).wire
    assert closed[3] == ItemDone(previous_item_id="item_0", item=whole)
    assert whole.content == (OutputAudio(transcript="Hello there."),)


def test_a_written_answer_has_text_events_in_their_place() -> None:
    response = written()
    opened, closed = open_(response), close(response)
    assert isinstance(opened[2], ContentPartAdded)
    assert opened[2].part == TextPart()
    assert [type(event) for event in closed][:2] == [TextDone, ContentPartDone]
    assert message_of(response).wire.content == (OutputText(text="Hello there."),)


def test_an_answer_out_of_band_adds_no_item_to_the_conversation() -> None:
    response = out_of_band()
    events = [*open_(response), *close(response)]
    assert not any(isinstance(event, ItemAdded | ItemDone) for event in events)
    assert done(response).response.conversation_id is None
    assert done(make_response()).response.conversation_id == "conv_1"


def test_an_answer_that_said_nothing_has_no_item() -> None:
    response = make_response()
    response.items.clear()
    response.shown = 0
    ending = list(ending_events(response, "conv_1"))
    assert [type(event) for event in ending] == [ResponseDone, RateLimitsUpdated]
    assert done(response).response.output == ()


def test_deltas_are_of_the_kind_of_the_answer() -> None:
    for response, kind in ((make_response(), AudioTranscriptDelta), (written(), OutputTextDelta)):
        assert isinstance(text_delta(response, message_of(response), "x"), kind)
    response = make_response()
    delta = audio_delta(response, message_of(response), b"\xff")
    assert delta == AudioDelta(
        response_id="resp_1", item_id="item_1", output_index=0, content_index=0, delta=b"\xff"
    )
    (part,) = [event.part for event in close(make_response()) if isinstance(event, ContentPartDone)]
    assert part == AudioPart(transcript="Hello there.")


def test_while_it_goes_on_a_response_shows_neither_output_nor_usage() -> None:
    shown = resource(make_response(), "conv_1", "in_progress")
    assert (shown.output, shown.usage, shown.status_details) == ((), None, None)
    assert shown.audio.output.format == PcmuFormat()


def make_call(whole: bool = True) -> OutputCall:
    return OutputCall("item_2", 1, "key", "look", "call_1", arguments=['{"at":', "1}"], whole=whole)


def test_a_function_call_opens_empty_and_closes_with_its_arguments_and_its_name() -> None:
    response, call = make_response(), make_call()
    call.wire = opened_call(call)
    opened = list(opening_events(response, call, "item_1"))
    assert [type(event) for event in opened] == [OutputItemAdded, ItemAdded]
    empty = FunctionCallItem(id="item_2", status="in_progress", name="look", call_id="call_1")
    assert opened[0] == OutputItemAdded(response_id="resp_1", output_index=1, item=empty)
    delta = arguments_delta(response, call, "1}")
    assert delta == FunctionCallArgumentsDelta(
        response_id="resp_1", item_id="item_2", output_index=1, call_id="call_1", delta="1}"
    )
    call.wire = finished_call(call)
    done_, item_done, output_done = closing_events(response, call, "item_1")
    assert done_ == FunctionCallArgumentsDone(
        response_id="resp_1",
        item_id="item_2",
        output_index=1,
        call_id="call_1",
        name="look",
        arguments='{"at":1}',
    )
    assert isinstance(item_done, ItemDone)
    assert isinstance(output_done, OutputItemDone)
    assert (output_done.item.status, output_done.item) == ("completed", call.wire)


def test_half_a_call_is_incomplete() -> None:
    assert finished_call(make_call(whole=False)).status == "incomplete"


def test_a_response_shows_the_items_that_the_client_has_seen() -> None:
    response, call = make_response(), make_call()
    call.wire = finished_call(call)
    response.items.append(call)
    close_message = message_of(response)
    close_message.wire = finished_message(close_message, "completed")
    assert done(response).response.output == (close_message.wire,)
    response.shown = 2
    assert done(response).response.output == (close_message.wire, call.wire)


def test_a_completed_response_needs_no_reason() -> None:
    assert done(make_response()).response.status_details is None


@pytest.mark.parametrize(
    ("status", "reason"),
    [("cancelled", "turn_detected"), ("incomplete", "max_output_tokens")],
)
def test_a_response_that_ended_early_says_why(status: str, reason: str) -> None:
    response = make_response(status=status)
    response.reason = reason
    assert done(response).response.status_details == StatusDetails(type=status, reason=reason)


@pytest.mark.parametrize(
    ("reason", "code"),
    [
        ("output_overflow", ErrorCode.OUTPUT_OVERFLOW),
        ("runner_spilled_coffee", ErrorCode.STAGE_FAILED),
    ],
)
def test_a_failed_response_says_in_public_words_what_happened(reason: str, code: ErrorCode) -> None:
    response = make_response(status="failed")
    response.reason = reason
    details = done(response).response.status_details
    assert details is not None
    assert details.error is not None
    assert (details.error.code, details.error.message) == (code, ERROR_TABLE[code].public_text)


def test_tokens_are_reported_and_zero_where_nobody_counted() -> None:
    response = make_response()
    assert done(response).response.usage.total_tokens == 0  # type: ignore[union-attr]
    response.usage = TokenUsage(30, 12, 20, 10, 4, 5)
    usage = done(response).response.usage
    assert usage is not None
    assert (usage.total_tokens, usage.input_tokens, usage.output_tokens) == (42, 30, 12)
    read = usage.input_token_details
    assert (read.text_tokens, read.audio_tokens, read.image_tokens) == (20, 10, 0)
    cached = read.cached_tokens_details
    assert (read.cached_tokens, cached.text_tokens, cached.audio_tokens) == (20, 15, 5)
    written_ = usage.output_token_details
    assert (written_.text_tokens, written_.audio_tokens) == (8, 4)


@pytest.mark.parametrize("response", [make_response(), written(), out_of_band()])
def test_every_event_survives_the_codec(response: Response) -> None:
    for event in (*open_(response, None), *close(response)):
        assert decode_event(encode_event(event, 1)) == (event, "event_1")
