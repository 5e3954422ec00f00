"""Messages as the chat templates of checkpoints read them, and the pictures that they point at.

Servers take OpenAI's messages; a library that is handed a checkpoint's own template takes these:
arguments of calls as objects, and a mark where each picture stands. This module must not know any
library.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from duologue.codecs.picture_urls import picture_in
from duologue.codecs.pictures import Pixels, decode
from duologue.core.errors import ClientError, EngineError
from duologue.engines.payloads import ChatRequest
from duologue.engines.runners.llm.chat_chunk import REQUEST_REFUSED, ChatBody


def template_messages(body: ChatBody) -> list[dict[str, Any]]:
    """Return the messages of a body for a template."""
    return [_message(message) for message in body.messages]


def pictures_of(request: ChatRequest, most: int, max_pixels: int) -> Sequence[Pixels]:
    """Return the pictures of all messages, in the order of their marks.

    Args:
        most: How many there may be; 0: the model does not see.
        max_pixels: Of one of them; told from its header before it is decoded.

    Raises:
        EngineError: There are too many, or one is too large or cannot be decoded.
    """
    urls = [url for message in request.messages for url in message.images]
    if len(urls) > most:
        raise EngineError(
            f"the prompt has {len(urls)} pictures, this model reads {most}", code=REQUEST_REFUSED
        )
    try:
        return [decode(picture_in(url, "image"), max_pixels)[:, :, :3] for url in urls]
    except ClientError as exc:
        raise EngineError(exc.message, code=REQUEST_REFUSED) from exc


def _message(message: dict[str, Any]) -> dict[str, Any]:
    content = message["content"]
    changed: dict[str, Any] = {}
    if isinstance(content, list):
        changed["content"] = [
            {"type": "image"} if part["type"] == "image_url" else part for part in content
        ]
    if "tool_calls" in message:
        changed["tool_calls"] = [
            {**call, "function": _with_object(call["function"])} for call in message["tool_calls"]
        ]
    return message | changed


def _with_object(function: dict[str, Any]) -> dict[str, Any]:
    return {**function, "arguments": msgspec.json.decode(function["arguments"])}
