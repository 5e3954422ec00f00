"""What the server may say about an answer, one class per event type.

This module must not know when an event is due.
"""

from __future__ import annotations

from typing import ClassVar, TypeAlias

import msgspec

from duologue.protocol.items import Item
from duologue.protocol.on_interruption import OnInterruption
from duologue.protocol.response_resource import ResponseResource


class ResponseCreated(msgspec.Struct, frozen=True, kw_only=True, tag="response.created"):
    """An answer begins."""

    on_interruption: ClassVar[OnInterruption] = OnInterruption.MUST_DELIVER

    response: ResponseResource


class ResponseDone(msgspec.Struct, frozen=True, kw_only=True, tag="response.done"):
    """An answer has ended; nothing of it follows."""

    on_interruption: ClassVar[OnInterruption] = OnInterruption.MUST_DELIVER

    response: ResponseResource


class OutputItemAdded(msgspec.Struct, frozen=True, kw_only=True, tag="response.output_item.added"):
    """An answer has a new item, still empty."""

    on_interruption: ClassVar[OnInterruption] = OnInterruption.MUST_DELIVER

    response_id: str
    output_index: int
    item: Item


class OutputItemDone(msgspec.Struct, frozen=True, kw_only=True, tag="response.output_item.done"):
    """An item of an answer is whole, or ``incomplete`` for good."""

    on_interruption: ClassVar[OnInterruption] = OnInterruption.MUST_DELIVER

    response_id: str
    output_index: int
    item: Item


class TextPart(msgspec.Struct, frozen=True, kw_only=True, tag="text"):
    """A part that is written; inside an item the same part is called ``output_text``."""

    text: str = ""


class AudioPart(msgspec.Struct, frozen=True, kw_only=True, tag="audio"):
    """A part that is spoken; inside an item the same part is called ``output_audio``."""

    transcript: str = ""


OutputPart: TypeAlias = TextPart | AudioPart


class ContentPartAdded(
    msgspec.Struct, frozen=True, kw_only=True, tag="response.content_part.added"
):
    """An item of an answer has a new part, still empty."""

    on_interruption: ClassVar[OnInterruption] = OnInterruption.MUST_DELIVER

    response_id: str
    item_id: str
    output_index: int
    content_index: int
    part: OutputPart


class ContentPartDone(msgspec.Struct, frozen=True, kw_only=True, tag="response.content_part.done"):
    """A part is as it will stay."""

    on_interruption: ClassVar[OnInterruption] = OnInterruption.MUST_DELIVER

    response_id: str
    item_id: str
    output_index: int
    content_index: int
    part: OutputPart


class OutputTextDelta(msgspec.Struct, frozen=True, kw_only=True, tag="response.output_text.delta"):
    """More written text."""

    on_interruption: ClassVar[OnInterruption] = OnInterruption.CLEARABLE

    response_id: str
    item_id: str
    output_index: int
    content_index: int
    delta: str


class TextDone(msgspec.Struct, frozen=True, kw_only=True, tag="response.output_text.done"):
    """The written text: all of its deltas together."""

    on_interruption: ClassVar[OnInterruption] = OnInterruption.MUST_DELIVER

    response_id: str
    item_id: str
    output_index: int
    content_index: int
    text: str


class AudioTranscriptDelta(
    msgspec.Struct, frozen=True, kw_only=True, tag="response.output_audio_transcript.delta"
):
    """More of the words that are spoken."""

    on_interruption: ClassVar[OnInterruption] = OnInterruption.CLEARABLE

    response_id: str
    item_id: str
    output_index: int
    content_index: int
    delta: str


class AudioTranscriptDone(
    msgspec.Struct, frozen=True, kw_only=True, tag="response.output_audio_transcript.done"
):
    """The words that were spoken: all of their deltas together."""

    on_interruption: ClassVar[OnInterruption] = OnInterruption.MUST_DELIVER

    response_id: str
    item_id: str
    output_index: int
    content_index: int
    transcript: str


class AudioDelta(
    msgspec.Struct, frozen=True, kw_only=True, gc=False, tag="response.output_audio.delta"
):
    """More speech, in the response's output format."""

    on_interruption: ClassVar[OnInterruption] = OnInterruption.CLEARABLE

    response_id: str
    item_id: str
    output_index: int
    content_index: int
    delta: bytes
    """Base64 in JSON."""


class FormattedAudioDelta(AudioDelta, frozen=True, kw_only=True, tag="response.output_audio.delta"):
    """More speech, and what it is. In the duplex dialect only."""

    format: str
    """``pcm16``, ``pcm_f32le``, ``g711_ulaw`` or ``g711_alaw``."""

    sample_rate_hz: int


class AudioDone(msgspec.Struct, frozen=True, kw_only=True, tag="response.output_audio.done"):
    """The speech has been sent, or was cut off."""

    on_interruption: ClassVar[OnInterruption] = OnInterruption.MUST_DELIVER

    response_id: str
    item_id: str
    output_index: int
    content_index: int


class FunctionCallArgumentsDelta(
    msgspec.Struct, frozen=True, kw_only=True, tag="response.function_call_arguments.delta"
):
    """More of the JSON text of a tool call's arguments."""

    on_interruption: ClassVar[OnInterruption] = OnInterruption.MUST_DELIVER

    response_id: str
    item_id: str
    output_index: int
    call_id: str
    delta: str


class FunctionCallArgumentsDone(
    msgspec.Struct, frozen=True, kw_only=True, tag="response.function_call_arguments.done"
):
    """The arguments of a tool call are whole."""

    on_interruption: ClassVar[OnInterruption] = OnInterruption.MUST_DELIVER

    response_id: str
    item_id: str
    output_index: int
    call_id: str
    name: str
    arguments: str
