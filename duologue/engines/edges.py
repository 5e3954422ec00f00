"""Edge functions: how the output of one stage becomes the input of the next.

They are pure and stateless, and are named in pipelines. One output may become no input, one, or
several. This module must not know which stages use it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from duologue.engines.answer_payloads import AnswerWords, BeginAnswer
from duologue.engines.payloads import (
    AudioChunk,
    Payload,
    TextDelta,
    TokenUsage,
    ToolCallDelta,
)


class Ahead(msgspec.Struct, frozen=True, gc=False):
    """An output that goes to the caller at once, past all stages that follow.

    It is charged to the last stage's credit, as if that had made it.
    """

    payload: Payload


Edge = Callable[[Payload], Sequence[Payload] | Ahead]
"""Raises ``EngineError`` for an output that the next stage cannot use; it fails the request."""


def forward(payload: Payload) -> Sequence[Payload]:
    """Hand everything on as it is."""
    return (payload,)


def text_only(payload: Payload) -> Sequence[Payload]:
    """Hand on text that says something; drop white space, calls and token counts."""
    match payload:
        case TextDelta(text=text) if text.strip():
            return (payload,)
        case TextDelta() | ToolCallDelta() | TokenUsage():
            return ()
        case _:
            return (payload,)


def sounded_ahead(payload: Payload) -> Sequence[Payload] | Ahead:
    """Hand codes on; speech that a talker has sounded itself goes past the codec."""
    return Ahead(payload) if isinstance(payload, AudioChunk) else (payload,)


def said_aloud(payload: Payload) -> Sequence[Payload] | Ahead:
    """Hand the words of an answer on; its text and what it cost go to the caller."""
    return (payload,) if isinstance(payload, BeginAnswer | AnswerWords) else Ahead(payload)


EDGES: Mapping[str, Edge] = {
    "forward": forward,
    "text_only": text_only,
    "sounded_ahead": sounded_ahead,
    "said_aloud": said_aloud,
}
"""Name in a pipeline -> function."""
