"""What of a long conversation stays in the prompt.

The oldest exchanges are left out whole, so that a function call never loses its output. Which ones
depends on the conversation alone: prompts that follow each other begin alike, and a prefix cache
stays of use. Pure; must not know where messages come from.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise

import msgspec

from duologue.core.errors import LimitExceeded
from duologue.duplex_plugins.retention import Retention
from duologue.engines.payloads import ChatMessage, Tools

CONTEXT_EXCEEDED = "context_length_exceeded"

_CHARS_PER_TOKEN = 3.5
_TOKENS_PER_MESSAGE = 5
_TOKENS_PER_HEARD_BYTE = 13 / 32_000
"""Recordings have 16,000 samples a second, of which models that hear make about 13 tokens."""

_LEAST_CHARS = 200
_FORGET_AT_ONCE = 4
"""Exchanges, where the client does not say how much to keep. Forgetting one at a time would change
the beginning of every prompt."""


def tokens(messages: Sequence[ChatMessage], picture_tokens: int = 0) -> float:
    """Estimate what messages take, from their characters and the number of their pictures.

    Args:
        picture_tokens: Of each picture.
    """
    return sum(_weight(message, picture_tokens) for message in messages)


def tool_tokens(tools: Tools) -> float:
    """Estimate what the functions take that a model is shown."""
    return sum(
        len(each.name + each.description + each.parameters) / _CHARS_PER_TOKEN + _TOKENS_PER_MESSAGE
        for each in (tools.functions if tools.callable else ())
    )


def retained(
    messages: Sequence[ChatMessage],
    room: float,
    retention: Retention,
    picture_tokens: int = 0,
) -> list[ChatMessage]:
    """Return the messages that stay: all of the last exchange, if need be shortened.

    Args:
        messages: The conversation.
        room: For them, in tokens.
        retention: What the client wants.
        picture_tokens: Of each picture.

    Raises:
        LimitExceeded: They do not fit, and nothing may be left out.
    """
    if retention.max_tokens is not None:
        room = min(room, retention.max_tokens)
    if not retention.allowed:
        taken = tokens(messages, picture_tokens)
        if taken > room:
            raise LimitExceeded(
                f"the conversation takes about {taken:.0f} tokens, there is room for "
                f"{room:.0f}, and truncation is disabled",
                code=CONTEXT_EXCEEDED,
            )
        return list(messages)
    starts = _exchanges(messages)
    if retention.keep is None:
        start = _in_blocks(messages, starts, room, picture_tokens)
    else:
        start = _to_a_share(messages, starts, room, retention.keep, picture_tokens)
    kept = list(messages[start:])
    if not kept or tokens(kept, picture_tokens) <= room:
        return kept
    return _shortened(kept, room, picture_tokens)


def _weight(message: ChatMessage, picture_tokens: int) -> float:
    calls = sum(len(call.name + call.arguments) for call in message.calls)
    words = (len(message.content) + calls) / _CHARS_PER_TOKEN
    heard = _heard_tokens(message.recordings)
    return words + heard + len(message.images) * picture_tokens + _TOKENS_PER_MESSAGE


def _heard_tokens(recordings: Sequence[bytes]) -> float:
    return sum(map(len, recordings)) * _TOKENS_PER_HEARD_BYTE


def _newest(recordings: tuple[bytes, ...], room: float) -> tuple[bytes, ...]:
    while len(recordings) > 1 and _heard_tokens(recordings) > room:
        recordings = recordings[1:]
    return recordings


def _exchanges(messages: Sequence[ChatMessage]) -> list[int]:
    """Return where exchanges begin: with the person's words, and at the very beginning."""
    begins = [
        index
        for index, (before, message) in enumerate(pairwise(messages), 1)
        if message.role == "user" and before.role != "user"
    ]
    return [0, *begins] if messages else []


def _in_blocks(
    messages: Sequence[ChatMessage], starts: Sequence[int], room: float, picture_tokens: int
) -> int:
    start = 0
    for later in (*starts[_FORGET_AT_ONCE::_FORGET_AT_ONCE], *starts[-1:]):
        if tokens(messages[start:], picture_tokens) <= room:
            break
        start = max(start, later)
    return start


def _to_a_share(
    messages: Sequence[ChatMessage],
    starts: Sequence[int],
    room: float,
    keep: float,
    picture_tokens: int,
) -> int:
    """Go through the conversation as it went: each time it was too long, a share of it stayed."""
    until = [0.0, *accumulate(_weight(message, picture_tokens) for message in messages)]
    start = 0
    for last, end in pairwise([*range(len(starts)), len(starts)]):
        reached = until[starts[end] if end < len(starts) else len(messages)]
        if reached - until[starts[start]] <= room:
            continue
        while start < last and reached - until[starts[start]] > room * keep:
            start += 1
    return starts[start] if starts else 0


def _shortened(exchange: list[ChatMessage], room: float, picture_tokens: int) -> list[ChatMessage]:
    """Cut what was said in one exchange that does not fit by itself.

    Of the recordings and the pictures of the last message the newest stay, as many as there is
    room for beside some words, and one in any case.
    """
    last = exchange[-1]
    if last.role != "tool":
        room -= _TOKENS_PER_MESSAGE
        for_words = min(len(last.content), _LEAST_CHARS) / _CHARS_PER_TOKEN
        recordings = _newest(last.recordings, room - for_words)
        room -= _heard_tokens(recordings)
        images = last.images
        if images and picture_tokens:
            images = images[-max(1, int((room - for_words) // picture_tokens)) :]
        room -= len(images) * picture_tokens
        chars = max(_LEAST_CHARS, int(room * _CHARS_PER_TOKEN))
        return [ChatMessage(last.role, last.content[-chars:], images=images, recordings=recordings)]
    # A call keeps its output; of all contents the same share stays, of outputs the beginning.
    share = max(0.0, room) / tokens(exchange, picture_tokens)
    return [
        msgspec.structs.replace(
            each, content=each.content[: max(_LEAST_CHARS, int(len(each.content) * share))]
        )
        for each in exchange
    ]
