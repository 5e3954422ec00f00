"""Settings of the omni plugin."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from duologue.config import Section


class OmniSettings(Section):
    """Who answers, and how."""

    pipeline: str = "qwen3_omni_chat"
    """Takes conversations with recordings and pictures, gives text and speech."""

    voices: Annotated[tuple[str, ...], Field(min_length=1)] = ("ethan", "chelsie", "aiden")
    """Voices that it has; the first one speaks where a client asks for none."""

    sees: bool = True
    """It understands pictures."""

    picture_tokens: Annotated[int, Field(ge=0, le=100_000)] = 400
    """What a picture counts as in ``prompt_tokens``."""

    recordings_s: Annotated[float, Field(ge=1, le=300)] = 60
    """How much of what a person has said is kept as it was heard, per call. Turns from before are
    read as their transcripts, where the client has them transcribed, else left out."""

    persona: str = "You are Duologue, a helpful voice assistant. Answer briefly, in spoken words."
    """First words of every prompt; the client's instructions follow."""

    temperature: Annotated[float, Field(ge=0, le=2)] = 0.0
    """Zero: the same question gets the same answer."""

    max_output_tokens: Annotated[int, Field(ge=1, le=4096)] = 400
    """Longest answer; a client may ask for a shorter one."""

    prompt_tokens: Annotated[int, Field(ge=100)] = 3000
    """Longest prompt, as estimated; the oldest exchanges are left out. With an answer it must fit
    into ``positions`` of the thinker."""

    speech_credit_ms: Annotated[int, Field(ge=200)] = 3000
    """Speech that may be made ahead of what was sent."""
