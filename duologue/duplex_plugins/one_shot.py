"""What a model can do without a session, for plain HTTP requests.

This module must not know routes.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class OneShot:
    """Pipelines that serve single requests over plain HTTP; ``None``: the model cannot do it.

    Args:
        chat: Reads a ``ChatRequest``, gives ``TextDelta``, ``ToolCallDelta`` and ``TokenUsage``.
        adapter: ``ChatRequest.adapter`` of its requests.
        speech: Reads ``SpeakText``, gives ``AudioChunk`` and ``SpeechMark``.
        transcription: Reads ``AudioChunk`` and ``DecodeSpeech``, gives ``Transcript``; ``None``:
            the recogniser of all sessions does.
        speeds: The slowest and the fastest that the speech pipeline can speak, 1 being its own.
    """

    chat: str | None = None
    adapter: str = ""
    speech: str | None = None
    transcription: str | None = None
    speeds: tuple[float, float] = (1.0, 1.0)


NOTHING_ALONE = OneShot()
"""A model for calls."""
