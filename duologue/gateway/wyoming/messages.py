"""What the data of Wyoming events holds, as far as it concerns speech and transcription.

This module must not know how events are framed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import msgspec

from duologue.gateway.catalogue import Catalogue, ServedModel
from duologue.gateway.wyoming.events import WyomingEvent
from duologue.protocol.json_refusals import body_refusal

T = TypeVar("T")

_URL = "https://github.com/OHF-Voice/wyoming"


class AudioForm(msgspec.Struct, frozen=True):
    """Of ``audio-start`` and ``audio-chunk``."""

    rate: int
    width: int
    channels: int


class AskedVoice(msgspec.Struct, frozen=True):
    """Of ``synthesize`` and ``synthesize-start``."""

    name: str | None = None


class AskedSpeech(msgspec.Struct, frozen=True):
    """Of ``synthesize`` and ``synthesize-start``, which has no text yet."""

    text: str = ""
    voice: AskedVoice | None = None


class AskedText(msgspec.Struct, frozen=True):
    """Of ``synthesize-chunk`` and ``ping``."""

    text: str = ""


class AskedTranscript(msgspec.Struct, frozen=True):
    """Of ``transcribe``."""

    name: str | None = None
    language: str | None = None


class HeardText(msgspec.Struct, frozen=True):
    """Of ``transcript``."""

    text: str
    language: str | None = None


class Complaint(msgspec.Struct, frozen=True):
    """Of ``error``."""

    text: str
    code: str


class Attribution(msgspec.Struct, frozen=True):
    """Whose work something is."""

    name: str = "Duologue"
    url: str = _URL


class AsrModel(msgspec.Struct, frozen=True, kw_only=True):
    """A recogniser."""

    name: str
    languages: Sequence[str]
    attribution: Attribution = Attribution()
    installed: bool = True
    description: str | None = None
    version: str | None = None


class AsrProgram(msgspec.Struct, frozen=True, kw_only=True):
    """All recognisers."""

    name: str = "duologue"
    models: Sequence[AsrModel]
    attribution: Attribution = Attribution()
    installed: bool = True
    description: str | None = "Duologue"
    version: str | None = None
    supports_transcript_streaming: bool = False


class TtsVoice(msgspec.Struct, frozen=True, kw_only=True):
    """A voice."""

    name: str
    languages: Sequence[str]
    attribution: Attribution = Attribution()
    installed: bool = True
    description: str | None = None
    version: str | None = None
    speakers: None = None


class TtsProgram(msgspec.Struct, frozen=True, kw_only=True):
    """All voices."""

    name: str = "duologue"
    voices: Sequence[TtsVoice]
    attribution: Attribution = Attribution()
    installed: bool = True
    description: str | None = "Duologue"
    version: str | None = None
    supports_synthesize_streaming: bool = True


class Info(msgspec.Struct, frozen=True):
    """Of ``info``."""

    asr: Sequence[AsrProgram] = ()
    tts: Sequence[TtsProgram] = ()


def typed(event: WyomingEvent, type_: type[T]) -> T:
    """Return an event's data as a message.

    Raises:
        ProtocolError: It is not.
    """
    try:
        return msgspec.convert(event.data, type_)
    except msgspec.ValidationError as exc:
        raise body_refusal(exc) from None


def info_of(catalogue: Catalogue) -> Info:
    """Return what the default model offers."""
    model: ServedModel = catalogue.find(None)
    languages = list(model.languages) or ["en"]
    hears = AsrProgram(models=[AsrModel(name=model.name, languages=languages)])
    speaks = TtsProgram(voices=[TtsVoice(name=v, languages=languages) for v in model.voices])
    return Info(
        [hears] if model.can("transcription") else [], [speaks] if model.can("speech") else []
    )
