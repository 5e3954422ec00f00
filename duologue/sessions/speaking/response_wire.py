"""How a response looks on the wire: its resource, its item, and the events around its output.

Pure functions from a response to events, in the order that clients need. This module must not
know when any of them is due.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import TypedDict, cast

from duologue.engines.payloads import TokenUsage
from duologue.protocol.audio_formats import AudioFormat, format_rate_hz
from duologue.protocol.duplex.events import ResponseSpeak
from duologue.protocol.duplex.format_names import duplex_name
from duologue.protocol.errors import ERROR_TABLE, ErrorCode
from duologue.protocol.events import Event, ItemAdded, ItemDone, RateLimitsUpdated
from duologue.protocol.items import (
    ContentPart,
    FunctionCallItem,
    ItemStatus,
    MessageItem,
    OutputAudio,
    OutputText,
)
from duologue.protocol.response_events import (
    AudioDelta,
    AudioDone,
    AudioPart,
    AudioTranscriptDelta,
    AudioTranscriptDone,
    ContentPartAdded,
    ContentPartDone,
    FormattedAudioDelta,
    FunctionCallArgumentsDelta,
    FunctionCallArgumentsDone,
    OutputItemAdded,
    OutputItemDone,
    OutputPart,
    OutputTextDelta,
    ResponseDone,
    TextDone,
    TextPart,
)
from duologue.protocol.response_resource import (
    CachedTokenDetails,
    InputTokenDetails,
    OutputTokenDetails,
    ResponseAudioOutputResource,
    ResponseAudioResource,
    ResponseFailure,
    ResponseResource,
    ResponseStatus,
    StatusDetails,
    Usage,
)
from duologue.sessions.speaking.output_items import OutputCall, OutputItem, OutputMessage
from duologue.sessions.speaking.response import Response


def resource(response: Response, conversation_id: str, status: ResponseStatus) -> ResponseResource:
    """Return the response as it stands."""
    config = response.config
    done = status != "in_progress"
    output = tuple(item.wire for item in response.items[: response.shown]) if done else ()
    return ResponseResource(
        id=response.id,
        status=status,
        status_details=_status_details(response) if done else None,
        output=output,
        conversation_id=None if response.out_of_band else conversation_id,
        output_modalities=config.output_modalities,
        audio=ResponseAudioResource(
            output=ResponseAudioOutputResource(format=config.output_format, voice=config.voice)
        ),
        max_output_tokens=config.max_output_tokens,
        metadata=config.metadata,
        usage=_usage(response.usage) if done else None,
    )


def opened_message(message: OutputMessage) -> MessageItem:
    """Return a message as it enters the conversation: empty, in progress."""
    return MessageItem(id=message.id, status="in_progress", role="assistant")


def opened_call(call: OutputCall) -> FunctionCallItem:
    """Return a function call as it enters the conversation: without arguments, in progress."""
    return FunctionCallItem(id=call.id, status="in_progress", name=call.name, call_id=call.call_id)


def finished_message(message: OutputMessage, status: ItemStatus) -> MessageItem:
    """Return a message with what was delivered of it."""
    text = "".join(message.delivered_text)
    content: ContentPart = OutputAudio(transcript=text) if message.audio else OutputText(text=text)
    return MessageItem(id=message.id, status=status, role="assistant", content=(content,))


def finished_call(call: OutputCall) -> FunctionCallItem:
    """Return a function call with all its arguments; half a call is ``incomplete``."""
    return FunctionCallItem(
        id=call.id,
        status="completed" if call.whole else "incomplete",
        name=call.name,
        call_id=call.call_id,
        arguments="".join(call.arguments),
    )


def opening_events(
    response: Response, item: OutputItem, previous_item_id: str | None
) -> Iterator[Event]:
    """Yield what comes before the first delta of an item."""
    yield OutputItemAdded(response_id=response.id, output_index=item.index, item=item.wire)
    if not response.out_of_band:
        yield ItemAdded(previous_item_id=previous_item_id, item=item.wire)
    if isinstance(item, OutputMessage):
        yield ContentPartAdded(**_place(response, item), part=_part(item, ""))


def text_delta(response: Response, message: OutputMessage, text: str) -> Event:
    """Return the event for a piece of text."""
    if message.audio:
        return AudioTranscriptDelta(**_place(response, message), delta=text)
    return OutputTextDelta(**_place(response, message), delta=text)


def arguments_delta(response: Response, call: OutputCall, piece: str) -> Event:
    """Return the event for a piece of a call's arguments."""
    return FunctionCallArgumentsDelta(
        response_id=response.id,
        item_id=call.id,
        output_index=call.index,
        call_id=call.call_id,
        delta=piece,
    )


def speaks(response: Response, message: OutputMessage) -> ResponseSpeak:
    """Return the event for a message that begins to be spoken or written."""
    return ResponseSpeak(**_place(response, message))


def audio_delta(
    response: Response, message: OutputItem, wire: bytes, extended: bool = False
) -> AudioDelta:
    """Return the event for a piece of speech in the response's output format.

    Args:
        extended: It says which format that is.
    """
    if extended:
        name, rate_hz = _declared(response.config.output_format)
        return FormattedAudioDelta(
            response_id=response.id,
            item_id=message.id,
            output_index=message.index,
            content_index=0,
            delta=wire,
            format=name,
            sample_rate_hz=rate_hz,
        )
    return AudioDelta(
        response_id=response.id,
        item_id=message.id,
        output_index=message.index,
        content_index=0,
        delta=wire,
    )


@functools.cache
def _declared(audio_format: AudioFormat) -> tuple[str, int]:
    return duplex_name(audio_format), format_rate_hz(audio_format)


def closing_events(
    response: Response, item: OutputItem, previous_item_id: str | None
) -> Iterator[Event]:
    """Yield what follows the last delta of an item."""
    if isinstance(item, OutputMessage):
        yield from _closing_of_message(response, item)
    else:
        yield FunctionCallArgumentsDone(
            response_id=response.id,
            item_id=item.id,
            output_index=item.index,
            call_id=item.call_id,
            name=item.name,
            arguments=item.wire.arguments,
        )
    if not response.out_of_band:
        yield ItemDone(previous_item_id=previous_item_id, item=item.wire)
    yield OutputItemDone(response_id=response.id, output_index=item.index, item=item.wire)


def _closing_of_message(response: Response, message: OutputMessage) -> Iterator[Event]:
    text = "".join(message.delivered_text)
    if message.audio:
        yield AudioDone(**_place(response, message))
        yield AudioTranscriptDone(**_place(response, message), transcript=text)
    else:
        yield TextDone(**_place(response, message), text=text)
    yield ContentPartDone(**_place(response, message), part=_part(message, text))


def ending_events(response: Response, conversation_id: str) -> Iterator[Event]:
    """Yield what follows the last item."""
    status = cast(ResponseStatus, response.status)
    yield ResponseDone(response=resource(response, conversation_id, status))
    yield RateLimitsUpdated()


class _Place(TypedDict):
    response_id: str
    item_id: str
    output_index: int
    content_index: int


def _place(response: Response, message: OutputMessage) -> _Place:
    return {
        "response_id": response.id,
        "item_id": message.id,
        "output_index": message.index,
        "content_index": 0,
    }


def _part(message: OutputMessage, text: str) -> OutputPart:
    return AudioPart(transcript=text) if message.audio else TextPart(text=text)


def _status_details(response: Response) -> StatusDetails | None:
    match response.status:
        case "completed":
            return None
        case "failed":
            return StatusDetails(
                type="failed", reason=response.reason, error=_failure(response.reason)
            )
        case "cancelled":
            return StatusDetails(type="cancelled", reason=response.reason)
        case _:
            return StatusDetails(type="incomplete", reason=response.reason)


def _failure(code: str) -> ResponseFailure:
    try:
        known = ErrorCode(code)
    except ValueError:
        # A runner may report codes of its own; clients see only those that are in the table.
        known = ErrorCode.STAGE_FAILED
    row = ERROR_TABLE[known]
    return ResponseFailure(type=row.type, code=known, message=row.public_text)


def _usage(usage: TokenUsage | None) -> Usage:
    if usage is None:
        return Usage()
    return Usage(
        total_tokens=usage.input_tokens + usage.output_tokens,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        input_token_details=InputTokenDetails(
            text_tokens=usage.input_tokens - usage.input_audio_tokens,
            audio_tokens=usage.input_audio_tokens,
            cached_tokens=usage.cached_tokens,
            cached_tokens_details=CachedTokenDetails(
                text_tokens=usage.cached_tokens - usage.cached_audio_tokens,
                audio_tokens=usage.cached_audio_tokens,
            ),
        ),
        output_token_details=OutputTokenDetails(
            text_tokens=usage.output_tokens - usage.output_audio_tokens,
            audio_tokens=usage.output_audio_tokens,
        ),
    )
