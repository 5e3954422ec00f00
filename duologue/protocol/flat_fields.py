"""Flat fields: the beta API had one level where the GA API nests audio settings.

Some clients send them on GA connections as well, so they are read whatever the dialect; where one
thing is said in both forms, the nested form counts. This module must not know which dialect a
connection speaks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from duologue.protocol.audio_formats import FormatPatch
from duologue.protocol.commands import (
    CreateResponse,
    ResponseAudio,
    ResponseAudioOutput,
    ResponseParams,
    UpdateSession,
)
from duologue.protocol.errors import ErrorCode, refused
from duologue.protocol.session_config import (
    FunctionChoice,
    MaxTokens,
    Modality,
    NoiseReduction,
    Voice,
)
from duologue.protocol.session_patch import (
    AudioInputPatch,
    AudioOutputPatch,
    AudioPatch,
    SessionPatch,
    TranscriptionPatch,
    TurnDetectionPatch,
    Unset,
)

FlatFormat: TypeAlias = Literal["pcm16", "g711_ulaw", "g711_alaw"]

FORMATS: Mapping[FlatFormat, FormatPatch] = {
    "pcm16": FormatPatch(type="audio/pcm", rate=24000),
    "g711_ulaw": FormatPatch(type="audio/pcmu"),
    "g711_alaw": FormatPatch(type="audio/pcma"),
}
"""The beta API knows PCM at one rate only."""

_T = TypeVar("_T")
_N = TypeVar("_N", None, UnsetType)


class NamedFunction(msgspec.Struct, frozen=True, kw_only=True):
    """A function by its name."""

    name: str


class FlatChoice(msgspec.Struct, frozen=True, kw_only=True, tag="function"):
    """The function that the model must call; the beta API had its name one level further in."""

    name: str | UnsetType = UNSET
    function: NamedFunction | UnsetType = UNSET

    def choice(self, param: str) -> FunctionChoice:
        """Return the same in the form of GA.

        Raises:
            ProtocolError: There is no name.
        """
        inside = UNSET if self.function is UNSET else self.function.name
        name = first_given(self.name, inside)
        if name is UNSET:
            raise refused(f"{param}.name is required", f"{param}.name", ErrorCode.MISSING_PARAMETER)
        return FunctionChoice(name=name)


AnyChoice: TypeAlias = Literal["auto", "none", "required"] | FlatChoice


def first_given(nested: _T, flat: _T) -> _T:
    """Return what the nested form says, else what the flat one does."""
    return flat if nested is UNSET else nested


class FlatFields(SessionPatch, frozen=True, kw_only=True):
    """The flat fields that every dialect which has any reads alike."""

    modalities: tuple[Modality, ...] | Unset | None = UNSET
    voice: Voice | Unset | None = UNSET
    speed: float | Unset | None = UNSET
    input_audio_transcription: TranscriptionPatch | Unset | None = UNSET
    input_audio_noise_reduction: NoiseReduction | Unset | None = UNSET
    turn_detection: TurnDetectionPatch | Unset | None = UNSET

    def audio_patch(
        self,
        heard: AudioInputPatch,
        said: AudioOutputPatch,
        heard_format: FormatPatch | Unset | None,
        said_format: FormatPatch | Unset | None,
    ) -> AudioPatch:
        """Return the audio settings in the nested form.

        Args:
            heard: What the nested form says of the input.
            said: What it says of the output.
            heard_format: The input's format, whatever form it had.
            said_format: The output's.
        """
        return AudioPatch(
            input=AudioInputPatch(
                format=heard_format,
                transcription=first_given(heard.transcription, self.input_audio_transcription),
                noise_reduction=first_given(
                    heard.noise_reduction, self.input_audio_noise_reduction
                ),
                turn_detection=first_given(heard.turn_detection, self.turn_detection),
            ),
            output=AudioOutputPatch(
                format=said_format,
                voice=first_given(said.voice, self.voice),
                speed=first_given(said.speed, self.speed),
            ),
        )


class FlatSession(FlatFields, frozen=True, kw_only=True):
    """The body of ``session.update`` with the fields of both forms."""

    tool_choice: AnyChoice | Unset | None = UNSET  # type: ignore[assignment]
    input_audio_format: FlatFormat | Unset | None = UNSET
    output_audio_format: FlatFormat | Unset | None = UNSET
    max_response_output_tokens: MaxTokens | Unset | None = UNSET

    def patch(self) -> SessionPatch:
        """Return the same in the nested form."""
        given = {name: getattr(self, name) for name in SessionPatch.__struct_fields__}
        if isinstance(self.tool_choice, FlatChoice):
            given["tool_choice"] = self.tool_choice.choice("session.tool_choice")
        if all(getattr(self, name) is UNSET for name in _FLAT_SESSION_FIELDS):
            return SessionPatch(**given)
        audio = self.audio or AudioPatch()
        inp, out = audio.input or AudioInputPatch(), audio.output or AudioOutputPatch()
        given["output_modalities"] = first_given(
            self.output_modalities, _modalities(self.modalities)
        )
        given["max_output_tokens"] = first_given(
            self.max_output_tokens, self.max_response_output_tokens
        )
        given["audio"] = self.audio_patch(
            inp,
            out,
            first_given(inp.format, _format(self.input_audio_format)),
            first_given(out.format, _format(self.output_audio_format)),
        )
        return SessionPatch(**given)


class FlatResponse(ResponseParams, frozen=True, kw_only=True):
    """The body of ``response.create`` with the fields of both forms."""

    tool_choice: AnyChoice | UnsetType = UNSET  # type: ignore[assignment]
    modalities: tuple[Modality, ...] | UnsetType = UNSET
    voice: Voice | UnsetType = UNSET
    output_audio_format: FlatFormat | UnsetType = UNSET
    max_response_output_tokens: MaxTokens | UnsetType = UNSET

    def params(self) -> ResponseParams:
        """Return the same in the nested form."""
        given = {name: getattr(self, name) for name in ResponseParams.__struct_fields__}
        if isinstance(self.tool_choice, FlatChoice):
            given["tool_choice"] = self.tool_choice.choice("response.tool_choice")
        if all(getattr(self, name) is UNSET for name in _FLAT_RESPONSE_FIELDS):
            return ResponseParams(**given)
        out = self.audio.output if self.audio else UNSET
        out = out or ResponseAudioOutput()
        flat = self.output_audio_format
        given["output_modalities"] = first_given(
            self.output_modalities, _modalities(self.modalities)
        )
        given["max_output_tokens"] = first_given(
            self.max_output_tokens, self.max_response_output_tokens
        )
        given["audio"] = ResponseAudio(
            output=ResponseAudioOutput(
                format=first_given(out.format, UNSET if flat is UNSET else FORMATS[flat]),
                voice=first_given(out.voice, self.voice),
            )
        )
        return ResponseParams(**given)


class FlatUpdate(msgspec.Struct, frozen=True, kw_only=True, tag="session.update"):
    """``session.update`` in either form."""

    event_id: str | None = None
    session: FlatSession

    def command(self) -> UpdateSession:
        """Return the command that it stands for."""
        return UpdateSession(event_id=self.event_id, session=self.session.patch())


class FlatTranscriptionUpdate(
    msgspec.Struct, frozen=True, kw_only=True, tag="transcription_session.update"
):
    """What the beta API had for sessions that only transcribe."""

    event_id: str | None = None
    session: FlatSession

    def command(self) -> UpdateSession:
        """Return the command that it stands for."""
        patch = msgspec.structs.replace(self.session.patch(), type="transcription")
        return UpdateSession(event_id=self.event_id, session=patch)


class FlatCreateResponse(msgspec.Struct, frozen=True, kw_only=True, tag="response.create"):
    """``response.create`` in either form."""

    event_id: str | None = None
    response: FlatResponse | UnsetType = UNSET

    def command(self) -> CreateResponse:
        """Return the command that it stands for."""
        params = UNSET if self.response is UNSET else self.response.params()
        return CreateResponse(event_id=self.event_id, response=params)


FlatCommand: TypeAlias = FlatUpdate | FlatTranscriptionUpdate | FlatCreateResponse

_FLAT_SESSION_FIELDS = set(FlatSession.__struct_fields__) - set(SessionPatch.__struct_fields__)
_FLAT_RESPONSE_FIELDS = set(FlatResponse.__struct_fields__) - set(ResponseParams.__struct_fields__)


def _format(name: FlatFormat | UnsetType | None) -> FormatPatch | UnsetType | None:
    return FORMATS[name] if isinstance(name, str) else name


def _modalities(
    names: tuple[Modality, ...] | UnsetType | _N,
) -> tuple[Modality, ...] | UnsetType | _N:
    """With both, the answer is spoken: what is spoken has always had its text too."""
    both = isinstance(names, tuple) and sorted(names) == ["audio", "text"]
    return ("audio",) if both else names
