"""What the server may say, one class per event type.

Events carry no ``event_id``: the session numbers them when they are delivered, and the encoder
writes the number. This module must not know when an event is due.
"""

from __future__ import annotations

from typing import ClassVar, Literal, TypeAlias, get_args

import msgspec

from duologue.protocol.duplex.events import DuplexEvent, SessionQueued
from duologue.protocol.items import Item
from duologue.protocol.on_interruption import OnInterruption
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
    OutputTextDelta,
    ResponseCreated,
    ResponseDone,
    TextDone,
)
from duologue.protocol.session_config import AnySession


class ErrorBody(msgspec.Struct, frozen=True, kw_only=True):
    """What went wrong, in the words of the API."""

    type: str
    """``invalid_request_error`` for the client's mistakes, ``server_error`` for ours, ..."""

    code: str | None = None
    """Stable, see the table of codes."""

    message: str
    param: str | None = None
    """The offending field, such as ``session.audio.input.turn_detection.threshold``."""

    event_id: str | None = None
    """The client's id of the offending event."""


class ErrorEvent(msgspec.Struct, frozen=True, kw_only=True, tag="error"):
    """A command was refused, or something failed; the session lives."""

    on_interruption: ClassVar[OnInterruption] = OnInterruption.MUST_DELIVER

    error: ErrorBody


class SessionCreated(msgspec.Struct, frozen=True, kw_only=True, tag="session.created"):
    """The first event of a connection."""

    on_interruption: ClassVar[OnInterruption] = OnInterruption.MUST_DELIVER

    session: AnySession


class ResumableSessionCreated(
    SessionCreated, frozen=True, kw_only=True, omit_defaults=True, tag="session.created"
):
    """The first event of a connection that may be replaced; only where the client asked for it."""

    resume_token: str
    """Opens the session to another connection."""

    attachment_generation: int
    """1, and one more with every connection of the session."""

    continues: str | None = None
    """The session before, where this one goes on with its conversation: the client came back to one
    that had reached its age limit. The items are as they were."""

    next_sample: int | None = None
    """Then also the first sample that the session before did not take in."""

    last_event_id: str | None = None
    """And the ``event_id`` of the latest message that it got."""


class SessionUpdated(msgspec.Struct, frozen=True, kw_only=True, tag="session.updated"):
    """A ``session.update`` was applied; shows all that is now in force."""

    on_interruption: ClassVar[OnInterruption] = OnInterruption.MUST_DELIVER

    session: AnySession


class ItemAdded(msgspec.Struct, frozen=True, kw_only=True, tag="conversation.item.added"):
    """An item entered the conversation; it may still grow."""

    on_interruption: ClassVar[OnInterruption] = OnInterruption.MUST_DELIVER

    previous_item_id: str | None
    """The item right before it; null where it is the first."""

    item: Item


class ItemDone(msgspec.Struct, frozen=True, kw_only=True, tag="conversation.item.done"):
    """An item is as it will stay."""

    on_interruption: ClassVar[OnInterruption] = OnInterruption.MUST_DELIVER

    previous_item_id: str | None
    """The item right before it; null where it is the first."""

    item: Item


class ItemRetrieved(msgspec.Struct, frozen=True, kw_only=True, tag="conversation.item.retrieved"):
    """The item that was asked for, without its audio."""

    on_interruption: ClassVar[OnInterruption] = OnInterruption.MUST_DELIVER

    item: Item


class ItemTruncated(msgspec.Struct, frozen=True, kw_only=True, tag="conversation.item.truncated"):
    """An assistant's speech was cut to what was heard."""

    on_interruption: ClassVar[OnInterruption] = OnInterruption.MUST_DELIVER

    item_id: str
    content_index: int
    audio_end_ms: int


class ItemDeleted(msgspec.Struct, frozen=True, kw_only=True, tag="conversation.item.deleted"):
    """An item left the conversation."""

    on_interruption: ClassVar[OnInterruption] = OnInterruption.MUST_DELIVER

    item_id: str


class DurationUsage(msgspec.Struct, frozen=True, kw_only=True, tag="duration"):
    """Transcription counted by the length of its audio."""

    seconds: float


class TokenUsageDetails(msgspec.Struct, frozen=True, kw_only=True):
    """Input tokens of a transcription by kind."""

    text_tokens: int = 0
    audio_tokens: int = 0


class TranscriptionTokenUsage(msgspec.Struct, frozen=True, kw_only=True, tag="tokens"):
    """Transcription counted in tokens."""

    total_tokens: int
    input_tokens: int
    output_tokens: int
    input_token_details: TokenUsageDetails = TokenUsageDetails()


class TranscriptionDelta(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag="conversation.item.input_audio_transcription.delta",
):
    """More of the transcript of a user's speech; the deltas together are the transcript."""

    on_interruption: ClassVar[OnInterruption] = OnInterruption.MUST_DELIVER

    item_id: str
    content_index: int = 0
    delta: str


class TranscriptionCompleted(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag="conversation.item.input_audio_transcription.completed",
):
    """The transcript of a user's speech; may come after the answer to it."""

    on_interruption: ClassVar[OnInterruption] = OnInterruption.MUST_DELIVER

    item_id: str
    content_index: int = 0
    transcript: str
    usage: DurationUsage | TranscriptionTokenUsage


class TranscriptionError(msgspec.Struct, frozen=True, kw_only=True):
    """Why there is no transcript."""

    type: str
    code: str
    message: str
    param: str | None = None


class TranscriptionFailed(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag="conversation.item.input_audio_transcription.failed",
):
    """A user's speech could not be transcribed; the conversation goes on."""

    on_interruption: ClassVar[OnInterruption] = OnInterruption.MUST_DELIVER

    item_id: str
    content_index: int = 0
    error: TranscriptionError


class SpeechStarted(
    msgspec.Struct, frozen=True, kw_only=True, tag="input_audio_buffer.speech_started"
):
    """The user speaks. Over an answer it is sent when the interruption is confirmed, back-dated."""

    on_interruption: ClassVar[OnInterruption] = OnInterruption.MUST_DELIVER

    audio_start_ms: int
    """Input audio time of the start, less the prefix padding."""

    item_id: str
    """The id that the committed item will have."""


class SpeechStopped(
    msgspec.Struct, frozen=True, kw_only=True, tag="input_audio_buffer.speech_stopped"
):
    """The user's turn seems to have ended."""

    on_interruption: ClassVar[OnInterruption] = OnInterruption.MUST_DELIVER

    audio_end_ms: int
    """Input audio time of the end."""

    item_id: str


class AudioCommitted(msgspec.Struct, frozen=True, kw_only=True, tag="input_audio_buffer.committed"):
    """The buffered audio became a user message."""

    on_interruption: ClassVar[OnInterruption] = OnInterruption.MUST_DELIVER

    previous_item_id: str | None
    """The item right before it; null where it is the first."""

    item_id: str


class AudioCleared(msgspec.Struct, frozen=True, kw_only=True, tag="input_audio_buffer.cleared"):
    """The buffered audio is forgotten."""

    on_interruption: ClassVar[OnInterruption] = OnInterruption.MUST_DELIVER


class IdleTimeoutTriggered(
    msgspec.Struct, frozen=True, kw_only=True, tag="input_audio_buffer.timeout_triggered"
):
    """Nobody spoke for the idle time-out; an answer follows."""

    on_interruption: ClassVar[OnInterruption] = OnInterruption.MUST_DELIVER

    audio_start_ms: int
    audio_end_ms: int
    item_id: str


class OutputBufferStarted(
    msgspec.Struct, frozen=True, kw_only=True, tag="output_audio_buffer.started"
):
    """The sound of a response starts, on transports where the server paces it."""

    on_interruption: ClassVar[OnInterruption] = OnInterruption.MUST_DELIVER

    response_id: str


class OutputBufferStopped(
    msgspec.Struct, frozen=True, kw_only=True, tag="output_audio_buffer.stopped"
):
    """The sound of a response has been played to its end."""

    on_interruption: ClassVar[OnInterruption] = OnInterruption.MUST_DELIVER

    response_id: str


class OutputBufferCleared(
    msgspec.Struct, frozen=True, kw_only=True, tag="output_audio_buffer.cleared"
):
    """The sound of a response was cut off."""

    on_interruption: ClassVar[OnInterruption] = OnInterruption.MUST_DELIVER

    response_id: str


class RateLimit(msgspec.Struct, frozen=True, kw_only=True):
    """One allowance."""

    name: Literal["requests", "tokens"]
    limit: int
    remaining: int
    reset_seconds: float


class RateLimitsUpdated(msgspec.Struct, frozen=True, kw_only=True, tag="rate_limits.updated"):
    """What is left of the client's allowances after a response."""

    on_interruption: ClassVar[OnInterruption] = OnInterruption.DROPPABLE

    rate_limits: tuple[RateLimit, ...] = ()


RealtimeEvent: TypeAlias = (
    ErrorEvent
    | SessionCreated
    | SessionUpdated
    | ItemAdded
    | ItemDone
    | ItemRetrieved
    | ItemTruncated
    | ItemDeleted
    | TranscriptionDelta
    | TranscriptionCompleted
    | TranscriptionFailed
    | SpeechStarted
    | SpeechStopped
    | AudioCommitted
    | AudioCleared
    | IdleTimeoutTriggered
    | OutputBufferStarted
    | OutputBufferStopped
    | OutputBufferCleared
    | ResponseCreated
    | ResponseDone
    | OutputItemAdded
    | OutputItemDone
    | ContentPartAdded
    | ContentPartDone
    | OutputTextDelta
    | TextDone
    | AudioTranscriptDelta
    | AudioTranscriptDone
    | AudioDelta
    | AudioDone
    | FunctionCallArgumentsDelta
    | FunctionCallArgumentsDone
    | RateLimitsUpdated
)
"""What every Realtime client knows, and the only events that a GA or a beta connection gets."""

STOCK_EVENTS = frozenset((*get_args(RealtimeEvent), ResumableSessionCreated, SessionQueued))
"""The same, with what a client has asked for at the handshake: two more fields in its
``session.created``, and its place in the queue."""

Event: TypeAlias = RealtimeEvent | DuplexEvent
"""What a session may say, in any dialect."""
