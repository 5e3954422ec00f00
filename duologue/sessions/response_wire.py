"""How a response looks on the wire: its resource, its item, and the events around its output.

Pure functions from a response to events, in the order that clients need. This module must not
know when any of them is due.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypedDict, cast

from duologue.engines.payloads import TokenUsage
from duologue.protocol.errors import ERROR_TABLE, ErrorCode
from duologue.protocol.events import Event, ItemAdded, ItemDone, RateLimitsUpdated
from duologue.protocol.items import ContentPart, ItemStatus, MessageItem, OutputAudio, OutputText
from duologue.protocol.response_events import (
    AudioDelta,
    AudioDone,
    AudioPart,
    AudioTranscriptDelta,
    AudioTranscriptDone,
    ContentPartAdded,
    ContentPartDone,
    OutputItemAdded,
    OutputItemDone,
    OutputPart,
    ResponseDone,
    TextDelta,
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
from duologue.sessions.response import Response


def resource(response: Response, conversation_id: str, status: ResponseStatus) -> ResponseResource:
    """Return the response as it stands."""
    config = response.config
    done = status != "in_progress"
    output = (finished_item(response),) if done and response.item_id else ()
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


def opened_item(response: Response) -> MessageItem:
    """Return the response's item as it enters the conversation: empty, in progress."""
    return MessageItem(id=response.item_id, status="in_progress", role="assistant")


def finished_item(response: Response) -> MessageItem:
    """Return the response's item with what was delivered of it."""
    text = "".join(response.delivered_text)
    part: ContentPart = OutputText(text=text)
    if response.audio:
        part = OutputAudio(transcript=text)
    status: ItemStatus = "completed" if response.status == "completed" else "incomplete"
    return MessageItem(id=response.item_id, status=status, role="assistant", content=(part,))


def opening_events(response: Response, previous_item_id: str | None) -> Iterator[Event]:
    """Yield what precedes the first delta."""
    item = opened_item(response)
    yield OutputItemAdded(response_id=response.id, output_index=0, item=item)
    if not response.out_of_band:
        yield ItemAdded(previous_item_id=previous_item_id, item=item)
    yield ContentPartAdded(**_place(response), part=_part(response, ""))


def text_delta(response: Response, text: str) -> Event:
    """Return the event for a piece of text."""
    if response.audio:
        return AudioTranscriptDelta(**_place(response), delta=text)
    return TextDelta(**_place(response), delta=text)


def audio_delta(response: Response, wire: bytes) -> AudioDelta:
    """Return the event for a piece of speech in the response's output format."""
    return AudioDelta(
        response_id=response.id,
        item_id=response.item_id,
        output_index=0,
        content_index=0,
        delta=wire,
    )


def closing_events(
    response: Response, conversation_id: str, previous_item_id: str | None
) -> Iterator[Event]:
    """Yield what follows the last delta, ``response.done`` included."""
    if response.item_id:
        text = "".join(response.delivered_text)
        if response.audio:
            yield AudioDone(**_place(response))
            yield AudioTranscriptDone(**_place(response), transcript=text)
        else:
            yield TextDone(**_place(response), text=text)
        item = finished_item(response)
        yield ContentPartDone(**_place(response), part=_part(response, text))
        if not response.out_of_band:
            yield ItemDone(previous_item_id=previous_item_id, item=item)
        yield OutputItemDone(response_id=response.id, output_index=0, item=item)
    status = cast(ResponseStatus, response.status)
    yield ResponseDone(response=resource(response, conversation_id, status))
    yield RateLimitsUpdated()


class _Place(TypedDict):
    response_id: str
    item_id: str
    output_index: int
    content_index: int


def _place(response: Response) -> _Place:
    return {
        "response_id": response.id,
        "item_id": response.item_id,
        "output_index": 0,
        "content_index": 0,
    }


def _part(response: Response, text: str) -> OutputPart:
    return AudioPart(transcript=text) if response.audio else TextPart(text=text)


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
            text_tokens=usage.input_tokens,
            cached_tokens=usage.cached_tokens,
            cached_tokens_details=CachedTokenDetails(text_tokens=usage.cached_tokens),
        ),
        output_token_details=OutputTokenDetails(text_tokens=usage.output_tokens),
    )
