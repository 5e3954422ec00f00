"""What a client may say, one class per event type.

This module must not know what a command leads to. Every command may carry an ``event_id`` of the
client's choice, which an error in answer to it repeats.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from duologue.protocol.append_audio import AppendAudio
from duologue.protocol.audio_formats import FormatPatch
from duologue.protocol.duplex.commands import DuplexCommand
from duologue.protocol.items import Item, ResponseInput
from duologue.protocol.session_config import (
    FunctionTool,
    MaxTokens,
    Modality,
    ToolChoice,
    Voice,
)
from duologue.protocol.session_patch import SessionPatch


class UpdateSession(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="session.update"
):
    """Change the session. All of the patch is applied, or nothing; ``session.updated`` answers."""

    event_id: str | None = None
    session: SessionPatch


class CommitAudio(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="input_audio_buffer.commit"
):
    """Make a user message of the buffered audio. No response starts by itself."""

    event_id: str | None = None


class ClearAudio(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="input_audio_buffer.clear"
):
    """Forget the buffered audio."""

    event_id: str | None = None


class ClearOutputAudio(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="output_audio_buffer.clear"
):
    """Stop the sound at once, on transports where the server paces it."""

    event_id: str | None = None


class CreateItem(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="conversation.item.create"
):
    """Put an item into the conversation. No response starts by itself."""

    event_id: str | None = None
    previous_item_id: str | None = None
    """Insert after this item; ``root`` for the front, null or absent for the end."""

    item: Item


class RetrieveItem(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="conversation.item.retrieve"
):
    """Ask for an item as the server knows it."""

    event_id: str | None = None
    item_id: str


class TruncateItem(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="conversation.item.truncate"
):
    """Say how much of an assistant's speech was heard; the rest leaves the history."""

    event_id: str | None = None
    item_id: str
    content_index: int = 0
    audio_end_ms: int
    """A whole number of milliseconds, 0 or more; clamped to what was sent."""


class DeleteItem(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="conversation.item.delete"
):
    """Take an item out of the conversation."""

    event_id: str | None = None
    item_id: str


class ResponseAudioOutput(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The output half of the audio settings of one response."""

    format: FormatPatch | UnsetType = UNSET
    voice: Voice | UnsetType = UNSET


class ResponseAudio(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The audio settings of one response."""

    output: ResponseAudioOutput | UnsetType = UNSET


class ResponseParams(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is different in this response; absent fields are as in the session."""

    output_modalities: tuple[Modality, ...] | UnsetType = UNSET
    instructions: str | UnsetType = UNSET
    audio: ResponseAudio | UnsetType = UNSET
    tools: tuple[FunctionTool, ...] | UnsetType = UNSET
    tool_choice: ToolChoice | UnsetType = UNSET
    parallel_tool_calls: bool | UnsetType = UNSET
    max_output_tokens: MaxTokens | UnsetType = UNSET
    temperature: float | UnsetType = UNSET
    """0 to 2."""

    metadata: dict[str, str] | UnsetType = UNSET
    """Echoed in ``response.created`` and ``response.done``."""

    conversation: Literal["auto", "none"] = "auto"
    """With ``none`` the answer does not enter the conversation."""

    input: tuple[ResponseInput, ...] | UnsetType = UNSET
    """What the model sees instead of the conversation."""

    interrupt: bool = False
    """Of Duologue's own: stop the active answer for this one, as if the person had spoken."""


class CreateResponse(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="response.create"
):
    """Ask for an answer."""

    event_id: str | None = None
    response: ResponseParams | UnsetType = UNSET


class CancelResponse(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="response.cancel"
):
    """Stop an answer: the named one, or else the conversation's active one."""

    event_id: str | None = None
    response_id: str | None = None


RealtimeCommand: TypeAlias = (
    UpdateSession
    | AppendAudio
    | CommitAudio
    | ClearAudio
    | ClearOutputAudio
    | CreateItem
    | RetrieveItem
    | TruncateItem
    | DeleteItem
    | CreateResponse
    | CancelResponse
)
"""What any Realtime client may say."""

Command: TypeAlias = RealtimeCommand | DuplexCommand
"""What a client may say in any dialect."""
