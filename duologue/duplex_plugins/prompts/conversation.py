"""What was said as messages for a language model. Pure; must not know which model reads them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

import msgspec

from duologue.duplex_plugins.contract import ItemView
from duologue.engines.payloads import ChatMessage

NO_RECORDINGS: Mapping[str, bytes] = MappingProxyType({})

INTERRUPTED = "..."
"""Follows the heard words of an answer that was interrupted."""

SILENCE = "(I have been silent for a while. Ask me briefly whether I am still there.)"
"""Stands for what a person has not said, when the model is to speak up."""

PENDING = "The result is not there yet."
"""Stands for the output of a function that is still running."""


def unanswered(conversation: Sequence[ItemView]) -> Sequence[ItemView]:
    """Return the person's turns since the assistant was last heard."""
    start = len(conversation)
    while start and not (
        conversation[start - 1].role == "assistant" and conversation[start - 1].text
    ):
        start -= 1
    return [item for item in conversation[start:] if item.role == "user"]


def joined(
    conversation: Iterable[ItemView], recordings: Mapping[str, bytes] = NO_RECORDINGS
) -> list[ChatMessage]:
    """Drop what says nothing, and make one message of turns that follow each other.

    Calls stand in the message that was said before them.

    Args:
        recordings: Of turns, by their items, for a model that hears: it gets these for their words.
    """
    messages: list[ChatMessage] = []
    for item in conversation:
        last = messages[-1] if messages else None
        if item.role == "tool":
            text = PENDING if item.text is None else item.text
            messages.append(ChatMessage("tool", text, call_id=item.call_id))
        elif item.call is not None:
            if last is None or last.role != "assistant":
                last = ChatMessage("assistant", "")
                messages.append(last)
            messages[-1] = msgspec.structs.replace(last, calls=(*last.calls, item.call))
        else:
            sounds = (recordings[item.id],) if item.id in recordings else ()
            words = "" if sounds else (item.text or "").strip()
            text = SILENCE if item.silence else words
            if not text and not item.images and not sounds:
                continue
            if item.role == "assistant" and item.interrupted:
                text += INTERRUPTED
            images = item.images
            if last is not None and last.role == item.role and not last.calls:
                text = f"{last.content} {text}".strip()
                images = (*last.images, *images)
                sounds = (*last.recordings, *sounds)
                messages.pop()
            messages.append(ChatMessage(item.role, text, images=images, recordings=sounds))
    return messages
