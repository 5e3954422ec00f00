"""Conversation items and their content parts, as they are on the wire.

This module must not know who says what when: ids, order and history belong to sessions.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

MAX_MEDIA_TYPE_CHARS = 128

Role: TypeAlias = Literal["system", "user", "assistant"]

ItemStatus: TypeAlias = Literal["in_progress", "completed", "incomplete"]
"""There is no ``cancelled`` item: strict clients refuse it. A cut item is ``incomplete``."""


class InputText(msgspec.Struct, frozen=True, kw_only=True, tag="input_text"):
    """Text from the user, or instructions in a system message."""

    text: str


class InputAudio(msgspec.Struct, frozen=True, kw_only=True, tag="input_audio"):
    """Speech from the user."""

    transcript: str | None = None
    """Null until the transcription is ready; the key is always on the wire, clients require it."""

    audio: bytes | UnsetType = UNSET
    """Base64 of wire bytes in the input format. Only clients send it; see ``without_audio``."""


class InputImage(msgspec.Struct, frozen=True, kw_only=True, tag="input_image"):
    """A picture from the user."""

    image_url: str
    """A ``data:image/...;base64,`` URL."""

    detail: Literal["auto", "low", "high"] = "auto"


class OutputText(msgspec.Struct, frozen=True, kw_only=True, tag="output_text"):
    """Text from the assistant in a response without speech."""

    text: str


class OutputAudio(msgspec.Struct, frozen=True, kw_only=True, tag="output_audio"):
    """Speech from the assistant: only its text is kept on the wire, the audio went as deltas."""

    transcript: str | None = None


ContentPart: TypeAlias = InputText | InputAudio | InputImage | OutputText | OutputAudio


class MessageItem(msgspec.Struct, frozen=True, kw_only=True, tag="message"):
    """What one side said."""

    id: str = ""
    """Chosen by the client, or by the session where it is empty."""

    object: Literal["realtime.item"] = "realtime.item"
    status: ItemStatus = "completed"
    role: Role
    content: tuple[ContentPart, ...] = ()


class FunctionCallItem(msgspec.Struct, frozen=True, kw_only=True, tag="function_call"):
    """The model asks the client to run a tool."""

    id: str = ""
    object: Literal["realtime.item"] = "realtime.item"
    status: ItemStatus = "completed"
    name: str
    call_id: str = ""
    """At most 32 characters; the result names it."""

    arguments: str = ""
    """JSON text; empty while the call is in progress."""


class FunctionCallOutputItem(msgspec.Struct, frozen=True, kw_only=True, tag="function_call_output"):
    """What the tool returned. No response starts by itself: the client asks for it."""

    id: str = ""
    object: Literal["realtime.item"] = "realtime.item"
    status: ItemStatus = "completed"
    call_id: str
    output: str


Item: TypeAlias = MessageItem | FunctionCallItem | FunctionCallOutputItem


class ItemReference(msgspec.Struct, frozen=True, kw_only=True, tag="item_reference"):
    """In the ``input`` of one response: an item that the conversation already holds."""

    id: str


ResponseInput: TypeAlias = Item | ItemReference


def as_shown(item: Item) -> Item:
    """Return the item as events show it: pictures without their data, as speech is.

    The client has the data; one picture could make a message larger than strict clients accept.
    """
    if not isinstance(item, MessageItem):
        return item
    if not any(isinstance(part, InputImage) for part in item.content):
        return item
    return msgspec.structs.replace(item, content=tuple(map(_without_data, item.content)))


def _without_data(part: ContentPart) -> ContentPart:
    if not isinstance(part, InputImage):
        return part
    head, comma, _ = part.image_url.partition(",")
    return msgspec.structs.replace(part, image_url=head[:MAX_MEDIA_TYPE_CHARS] + comma)


def text_bytes(item: Item) -> int:
    """About what an item weighs in memory and on the wire, apart from a fixed part."""
    match item:
        case FunctionCallItem(arguments=arguments):
            return len(arguments)
        case FunctionCallOutputItem(output=output):
            return len(output)
        case MessageItem(content=content):
            return sum(_part_bytes(part) for part in content)


def _part_bytes(part: ContentPart) -> int:
    match part:
        case InputText(text=text) | OutputText(text=text):
            return len(text)
        case InputImage(image_url=url):
            return len(url)
        case InputAudio(transcript=transcript) | OutputAudio(transcript=transcript):
            return len(transcript or "")


def without_audio(item: Item) -> Item:
    """Return the item with no audio in it, as every server event shows it.

    Audio of a minute would make one message larger than strict clients accept.
    """
    if not isinstance(item, MessageItem):
        return item
    if not any(isinstance(part, InputAudio) and part.audio is not UNSET for part in item.content):
        return item
    content = tuple(
        InputAudio(transcript=part.transcript) if isinstance(part, InputAudio) else part
        for part in item.content
    )
    return msgspec.structs.replace(item, content=content)
