"""Which voice of a model a name means, and how fast it is to speak.

This module must not know how a voice sounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from duologue.gateway.catalogue import ServedModel
from duologue.protocol.errors import refused, shown
from duologue.sessions.dialogue.plugin_config import OPENAI_VOICES

SLOWEST, FASTEST = 0.25, 4.0


@dataclass(frozen=True, slots=True)
class Manner:
    """How something is to be said.

    Args:
        voice: One of the model's own.
        speed: What the model is asked for.
        tempo: By how much its speech must be made faster besides; 1: not at all.
        instructions: For models that can be told how to speak.
    """

    pipeline: str
    voice: str
    speed: float = 1.0
    tempo: float = 1.0
    instructions: str = ""


def manner(
    model: ServedModel,
    voice: str | None,
    speed: float,
    instructions: str = "",
    *,
    voice_param: str = "voice",
) -> Manner:
    """Return how a model is to speak.

    A speed that the voice does not have is reached by stretching time, at the same pitch.

    Args:
        voice: What the client asks for; none: the default one.
        voice_param: The field that names it.

    Raises:
        ProtocolError: The model cannot speak, has no such voice, or nobody can follow.
    """
    pipeline = model.pipeline("speech")
    own = model_voice(model.voices, voice, voice_param)
    if not SLOWEST <= speed <= FASTEST:
        raise refused(f"speed is {speed:g}; it may be {SLOWEST:g} to {FASTEST:g}", "speed")
    slowest, fastest = model.speeds
    spoken = min(max(speed, slowest), fastest)
    return Manner(pipeline, own, spoken, speed / spoken, instructions)


def model_voice(voices: Sequence[str], asked: str | None, param: str = "voice") -> str:
    """Return the model's name for a voice; those of stock clients mean one of the model's own.

    Raises:
        ProtocolError: There is no such voice.
    """
    if asked is None or asked in voices:
        return voices[0] if asked is None else asked
    if asked in OPENAI_VOICES:
        return aliases(voices)[asked]
    known = ", ".join(dict.fromkeys((*voices, *sorted(OPENAI_VOICES))))
    raise refused(f"there is no voice {shown(asked)}; there are: {known}", param)


def aliases(voices: Sequence[str]) -> dict[str, str]:
    """Return what the names of stock clients mean, spread over the model's voices."""
    names = [name for name in sorted(OPENAI_VOICES) if name not in voices]
    return {name: voices[place % len(voices)] for place, name in enumerate(names)}
