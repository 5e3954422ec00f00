"""What an input weighs while it waits. Must not know where inputs wait, or how much may.

Both ends of a link use it: the engine adds what it sends, workers say what they took.
"""

from __future__ import annotations

from duologue.engines.payloads import AudioChunk, ChatRequest, Payload, SpeakText, TextDelta

INPUT_OVERHEAD_BYTES = 256
"""What an input takes beside its contents, so that a flood of empty ones is bounded as well."""


def input_bytes(payload: Payload) -> int:
    """Roughly the memory that an input takes; a character counts for one byte."""
    match payload:
        case AudioChunk(pcm=pcm):
            return INPUT_OVERHEAD_BYTES + len(pcm)
        case TextDelta(text=text) | SpeakText(text=text):
            return INPUT_OVERHEAD_BYTES + len(text)
        case ChatRequest(messages=messages):
            return INPUT_OVERHEAD_BYTES * (1 + len(messages)) + sum(
                len(each.content) for each in messages
            )
        case _:
            return INPUT_OVERHEAD_BYTES
