"""Checks of single settings, shared by the session's configuration and that of one response.

Types and enumerations are checked by the decoder; here are the ranges and what depends on more
than one value. This module must not know where a setting is used: it is told the ``param``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET

from duologue.protocol.audio_formats import (
    G711_RATE_HZ,
    OPUS_RATES_HZ,
    PCM_RATES_HZ,
    AudioFormat,
    FloatPcmFormat,
    FormatPatch,
    OpusFormat,
    PcmaFormat,
    PcmFormat,
    PcmuFormat,
)
from duologue.protocol.errors import over_limit, refused, shown
from duologue.protocol.limits import (
    MAX_INSTRUCTIONS_CHARS,
    MAX_NESTING_LEVELS,
    MAX_TOOL_NAME_CHARS,
    MAX_TOOLS,
    MAX_WRITTEN_BYTES,
)
from duologue.protocol.session_config import (
    CustomVoice,
    FunctionChoice,
    FunctionTool,
    MaxTokens,
    Modality,
    ToolChoice,
    Voice,
)

_MOST_TOKENS = 2**31 - 1
_TEMPERATURE_RANGE = (0.0, 2.0)
_Number = TypeVar("_Number", int, float)


@dataclass(frozen=True, slots=True, kw_only=True)
class Supported:
    """What this server and model can do; a setting that asks for more is refused."""

    voices: frozenset[str] | None = None
    """None: any name will do."""

    turn_detection: frozenset[str] = frozenset({"server_vad", "semantic_vad"})

    transcribes: bool = True
    """A session may be for transcription alone."""

    persona_stays: bool = False
    """The model has begun to speak, and voice, instructions and seed are what it began with."""

    reads_instructions: bool = True
    """They reach the model. Where they do not, they may say anything at any time."""

    sampling: bool = True
    """The model can be told from how many tokens it draws, and from which seed."""


ANYTHING = Supported()


def check_range(
    value: _Number, limits: tuple[_Number, _Number], param: str, unit: str = ""
) -> _Number:
    """Return the value if it lies within the limits, both included; NaN does not."""
    low, high = limits
    if not low <= value <= high:
        suffix = f" {unit}" if unit else ""
        raise refused(f"{param} is {value}{suffix}, allowed is {low} to {high}{suffix}", param)
    return value


def check_instructions(text: str, param: str) -> str:
    """Return the instructions if they are not too long."""
    if len(text) > MAX_INSTRUCTIONS_CHARS:
        raise over_limit(param, len(text), MAX_INSTRUCTIONS_CHARS, param, "characters")
    return text


def check_modalities(modalities: Sequence[Modality], param: str) -> tuple[Modality, ...]:
    """Return the modalities if there is at least one, and none twice."""
    if not modalities or len(set(modalities)) != len(modalities):
        raise refused(
            f"{param} is {shown(list(modalities[:9]))}, give ['audio'] or ['text']",
            param,
        )
    return tuple(modalities)


def check_voice(voice: Voice, supported: Supported, param: str) -> Voice:
    """Return the voice if this server has it."""
    name = voice.id if isinstance(voice, CustomVoice) else voice
    if supported.voices is not None and name not in supported.voices:
        known = ", ".join(sorted(supported.voices))
        raise refused(f"there is no voice {shown(name)}; there are {known}", param)
    return voice


def check_tools(tools: Sequence[FunctionTool], param: str) -> tuple[FunctionTool, ...]:
    """Return the tools if their names can be told apart."""
    if len(tools) > MAX_TOOLS:
        raise over_limit(param, len(tools), MAX_TOOLS, param, "tools")
    seen: set[str] = set()
    for index, tool in enumerate(tools):
        where = f"{param}[{index}].name"
        if not 1 <= len(tool.name) <= MAX_TOOL_NAME_CHARS:
            raise over_limit(where, len(tool.name), MAX_TOOL_NAME_CHARS, where, "characters")
        if tool.name in seen:
            raise refused(f"two tools are called {shown(tool.name)}", where)
        seen.add(tool.name)
        check_nesting(tool.parameters, f"{param}[{index}].parameters")
    return tuple(tools)


def check_tool_choice(choice: ToolChoice, tools: Sequence[FunctionTool], param: str) -> ToolChoice:
    """Return the choice if there is a function that it can fall on."""
    if choice == "required" and not tools:
        raise refused(f"{param} is required, but there are no tools", param)
    if isinstance(choice, FunctionChoice) and all(tool.name != choice.name for tool in tools):
        known = ", ".join(tool.name for tool in tools) or "none"
        raise refused(f"there is no tool {shown(choice.name)}; there are: {known}", f"{param}.name")
    return choice


def check_nesting(value: object, param: str) -> None:
    """Refuse JSON of the client's that is nested so deeply that it may not be written again."""
    level = [value]
    for _ in range(MAX_NESTING_LEVELS):
        level = [
            inner
            for outer in level
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
        if not level:
            return
    raise over_limit(param, MAX_NESTING_LEVELS + 1, MAX_NESTING_LEVELS, param, "levels or more")


def check_written(value: object, param: str) -> None:
    """Refuse what would make a message to a client larger than stock clients take."""
    size = len(msgspec.json.encode(value))
    if size > MAX_WRITTEN_BYTES:
        raise over_limit(param, size, MAX_WRITTEN_BYTES, param, "bytes of JSON")


def check_max_tokens(limit: MaxTokens, param: str) -> MaxTokens:
    """Return the limit if it leaves room for an answer."""
    if limit != "inf" and not 1 <= limit <= _MOST_TOKENS:
        raise refused(f'{param} is {shown(limit)}, allowed is 1 to {_MOST_TOKENS}, or "inf"', param)
    return limit


def check_temperature(value: float | None, param: str) -> float | None:
    """Return the temperature if models can use it."""
    return None if value is None else check_range(value, _TEMPERATURE_RANGE, param)


def merge_format(current: AudioFormat, patch: FormatPatch, param: str) -> AudioFormat:
    """Apply a patch to an audio format.

    A rate that is not named stays where the type stays; a new format starts at its default.
    """
    kind: type[Any] = type(current) if patch.type is UNSET else _FORMATS[patch.type]
    rate = None if patch.rate is UNSET else patch.rate
    if kind in (PcmuFormat, PcmaFormat):
        if rate is not None and rate != G711_RATE_HZ:
            raise refused(f"{param}.rate is {rate}, G.711 has {G711_RATE_HZ} only", f"{param}.rate")
        return _made(kind)
    if rate is None:
        return current if type(current) is kind else _made(kind)
    allowed = OPUS_RATES_HZ if kind is OpusFormat else PCM_RATES_HZ
    return _made(kind, rate=_one_of(rate, allowed, param))


def _made(kind: type[Any], **rate: int) -> AudioFormat:
    made: AudioFormat = kind(**rate)
    return made


def _one_of(rate: int, allowed: Sequence[int], param: str) -> int:
    for known in allowed:
        if rate == known:
            return known
    rates = ", ".join(map(str, allowed))
    raise refused(f"{param}.rate is {rate}, allowed are {rates}", f"{param}.rate")


_FORMATS: dict[str, type[Any]] = {
    str(kind.__struct_config__.tag): kind
    for kind in (PcmFormat, PcmuFormat, PcmaFormat, FloatPcmFormat, OpusFormat)
}
