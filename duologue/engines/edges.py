"""Edge functions: how the output of one stage becomes the input of the next.

They are pure and stateless, and are named in pipelines. One output may become no input, one, or
several. This module must not know which stages use it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from duologue.engines.payloads import Payload, TextDelta, TokenUsage, ToolCallDelta

Edge = Callable[[Payload], Sequence[Payload]]
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


EDGES: Mapping[str, Edge] = {"forward": forward, "text_only": text_only}
"""Name in a pipeline -> function."""
