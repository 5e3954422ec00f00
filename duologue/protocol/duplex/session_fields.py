"""``session.update`` as clients of the duplex dialect write it: nested, flat, and with its aliases.

Where one thing is said in two forms, the nested form counts. This module must not know what a
setting does.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

from duologue.protocol.audio_formats import FormatPatch
from duologue.protocol.commands import UpdateSession
from duologue.protocol.duplex.config import OverlapPolicy, PlaybackCommitPolicy
from duologue.protocol.duplex.format_names import FORMAT_TYPES, FormatType
from duologue.protocol.duplex.session_patch import DuplexPatch
from duologue.protocol.errors import ErrorCode, refused, shown
from duologue.protocol.flat_fields import FlatFields, first_given
from duologue.protocol.session_config import (
    FunctionTool,
    MaxTokens,
    ToolChoice,
)
from duologue.protocol.session_patch import (
    AudioInputPatch,
    AudioOutputPatch,
)

_NO_LIMIT: Mapping[str, Literal["inf"]] = MappingProxyType(
    {"inf": "inf", "infinity": "inf", "unlimited": "inf"}
)


class FormatObject(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A format that says its rate."""

    type: str | UnsetType = UNSET
    format: str | UnsetType = UNSET
    rate: int | UnsetType | None = UNSET
    sample_rate_hz: int | UnsetType | None = UNSET
    sample_rate: int | UnsetType | None = UNSET


class InputFields(AudioInputPatch, frozen=True, kw_only=True):
    """The input half of the audio settings."""

    format: str | FormatObject | UnsetType | None = UNSET  # type: ignore[assignment]
    sample_rate_hz: int | UnsetType | None = UNSET


class OutputFields(AudioOutputPatch, frozen=True, kw_only=True):
    """The output half of the audio settings."""

    format: str | FormatObject | UnsetType | None = UNSET  # type: ignore[assignment]
    sample_rate_hz: int | UnsetType | None = UNSET


class AudioFields(msgspec.Struct, frozen=True, kw_only=True):
    """Both halves."""

    input: InputFields | UnsetType | None = UNSET
    output: OutputFields | UnsetType | None = UNSET


class ExtraBody(msgspec.Struct, frozen=True, kw_only=True):
    """What some clients put apart; keys that are not listed have no effect."""

    auto_response: bool | UnsetType | None = UNSET
    overlap_policy: OverlapPolicy | UnsetType | None = UNSET
    overlap_barge_in_ms: int | UnsetType | None = UNSET
    top_k: int | UnsetType | None = UNSET
    seed: int | UnsetType | None = UNSET
    realtime_tools: tuple[FunctionTool, ...] | UnsetType | None = UNSET
    realtime_tool_choice: ToolChoice | UnsetType | None = UNSET


class SessionFields(FlatFields, frozen=True, kw_only=True):
    """The body of ``session.update`` in every form."""

    type: Literal["realtime"] | UnsetType = UNSET
    audio: AudioFields | UnsetType | None = UNSET  # type: ignore[assignment]
    max_output_tokens: int | str | UnsetType | None = UNSET  # type: ignore[assignment]
    max_response_output_tokens: int | str | UnsetType | None = UNSET
    max_tokens: int | str | UnsetType | None = UNSET
    input_audio_format: str | FormatObject | UnsetType | None = UNSET
    output_audio_format: str | FormatObject | UnsetType | None = UNSET
    sample_rate_hz: int | UnsetType | None = UNSET
    model: str | UnsetType | None = UNSET
    ref_audio: str | UnsetType | None = UNSET
    overlap_policy: OverlapPolicy | UnsetType | None = UNSET
    overlap_barge_in_ms: int | UnsetType | None = UNSET
    playback_commit_policy: PlaybackCommitPolicy | UnsetType | None = UNSET
    idle_timeout_s: float | UnsetType | None = UNSET
    top_k: int | UnsetType | None = UNSET
    seed: int | UnsetType | None = UNSET
    extra_body: ExtraBody | UnsetType | None = UNSET

    def patch(self) -> DuplexPatch:
        """Return the same in one form.

        Raises:
            ProtocolError: A format is not known, or no such number of tokens.
        """
        audio = self.audio or AudioFields()
        heard, said = audio.input or InputFields(), audio.output or OutputFields()
        extra = self.extra_body or ExtraBody()
        return DuplexPatch(
            type=self.type,
            instructions=self.instructions,
            output_modalities=first_given(self.output_modalities, self.modalities),
            audio=self.audio_patch(
                heard,
                said,
                _format(
                    first_given(heard.format, self.input_audio_format),
                    first_given(heard.sample_rate_hz, self.sample_rate_hz),
                    "session.input_audio_format",
                ),
                _format(
                    first_given(said.format, self.output_audio_format),
                    said.sample_rate_hz,
                    "session.output_audio_format",
                ),
            ),
            tools=first_given(self.tools, extra.realtime_tools),
            tool_choice=first_given(self.tool_choice, extra.realtime_tool_choice),
            max_output_tokens=_tokens(
                first_given(
                    first_given(self.max_output_tokens, self.max_response_output_tokens),
                    self.max_tokens,
                )
            ),
            tracing=self.tracing,
            truncation=self.truncation,
            temperature=self.temperature,
            model=UNSET if self.model is None else self.model,
            ref_audio=self.ref_audio,
            overlap_policy=first_given(self.overlap_policy, extra.overlap_policy),
            overlap_barge_in_ms=first_given(self.overlap_barge_in_ms, extra.overlap_barge_in_ms),
            playback_commit_policy=self.playback_commit_policy,
            auto_response=extra.auto_response,
            idle_timeout_s=self.idle_timeout_s,
            top_k=first_given(self.top_k, extra.top_k),
            seed=first_given(self.seed, extra.seed),
        )


class UpdateFields(msgspec.Struct, frozen=True, kw_only=True, tag="session.update"):
    """``session.update``; without ``session`` the message itself is the session."""

    event_id: str | None = None
    session: SessionFields | UnsetType = UNSET

    def command(self, flat: SessionFields) -> UpdateSession:
        """Return the command that it stands for.

        Args:
            flat: What the message says outside of ``session``.
        """
        fields = flat if self.session is UNSET else self.session
        return UpdateSession(event_id=self.event_id, session=fields.patch())


def format_type(name: str, param: str) -> FormatType:
    """Return what the Realtime API calls a format.

    Raises:
        ProtocolError: There is no such format.
    """
    known = FORMAT_TYPES.get(name)
    if known is None:
        names = ", ".join(FORMAT_TYPES)
        raise refused(
            f"{param} is {shown(name)}, there are {names}",
            param,
            ErrorCode.UNSUPPORTED_AUDIO_FORMAT,
        )
    return known


def _format(
    given: str | FormatObject | UnsetType | None,
    beside: int | UnsetType | None,
    param: str,
) -> FormatPatch | UnsetType:
    rate = beside or UNSET
    name: str | UnsetType = UNSET
    if isinstance(given, FormatObject):
        name = first_given(given.type, given.format)
        rate = given.rate or given.sample_rate_hz or given.sample_rate or rate
    elif isinstance(given, str):
        name = given
    if name is UNSET:
        return UNSET if rate is UNSET else FormatPatch(rate=rate)
    return FormatPatch(type=format_type(name, param), rate=rate)


def _tokens(given: int | str | UnsetType | None) -> MaxTokens | UnsetType | None:
    if not isinstance(given, str):
        return given
    limit = _NO_LIMIT.get(given)
    if limit is None:
        raise refused(
            f"max_output_tokens is {shown(given)}, allowed is a number or inf",
            "session.max_output_tokens",
        )
    return limit
