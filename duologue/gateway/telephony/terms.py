"""On what terms a phone call begins: settings, what a key binds it to, what its carrier adds.

This module must not know carriers or sessions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

import msgspec
from msgspec import UNSET

from duologue.gateway.client_secrets import BoundSession
from duologue.gateway.telephony.carrier import PhoneFormat
from duologue.gateway.telephony.settings import TelephonySettings
from duologue.protocol.audio_formats import FormatPatch
from duologue.protocol.session_patch import (
    AudioInputPatch,
    AudioOutputPatch,
    AudioPatch,
    SessionPatch,
)

KEY_PARAMETER = "key"
"""The parameter in which a carrier may bring an API key or a client secret."""

S = TypeVar("S", bound=msgspec.Struct)


@dataclass(frozen=True, slots=True)
class Terms:
    """How a call begins.

    Args:
        greeting: What the model is told to say first; empty: nothing.
    """

    model: str | None
    patch: SessionPatch
    greeting: str


def terms_of_call(
    settings: TelephonySettings,
    bound: BoundSession | None,
    parameters: Mapping[str, str],
    audio: PhoneFormat,
) -> Terms:
    """Put the terms together; what is more particular to this call wins.

    Args:
        parameters: ``model``, ``instructions``, ``voice`` and ``greeting`` count; others do not.
        audio: Both ways; nothing can change that.
    """
    chosen = {
        "model": settings.model,
        "instructions": settings.instructions,
        "voice": settings.voice,
        "greeting": settings.greeting,
    }
    patch = _settings_patch(chosen["instructions"], chosen["voice"])
    if bound is not None:
        patch = combined(patch, bound.patch)
        chosen["model"] = bound.model or chosen["model"]
    chosen |= {name: parameters[name] for name in chosen if name in parameters}
    patch = combined(
        patch, _settings_patch(parameters.get("instructions"), parameters.get("voice"))
    )
    line = FormatPatch(type=audio)
    sound = AudioPatch(input=AudioInputPatch(format=line), output=AudioOutputPatch(format=line))
    return Terms(
        chosen["model"],
        combined(patch, SessionPatch(type="realtime", output_modalities=("audio",), audio=sound)),
        chosen["greeting"] or "",
    )


def combined(base: S, change: S) -> S:
    """Return one patch that does what two do one after the other."""
    merged = {}
    for name in base.__struct_fields__:
        before, after = getattr(base, name), getattr(change, name)
        if after is UNSET:
            continue
        both = isinstance(before, msgspec.Struct) and type(before) is type(after)
        merged[name] = combined(before, after) if both else after
    return msgspec.structs.replace(base, **merged)


def _settings_patch(instructions: str | None, voice: str | None) -> SessionPatch:
    audio = UNSET if voice is None else AudioPatch(output=AudioOutputPatch(voice=voice))
    return SessionPatch(instructions=UNSET if instructions is None else instructions, audio=audio)
