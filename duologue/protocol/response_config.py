"""The effective configuration of one response: the session's, with what the request changes.

This module must not know how the response is made.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from msgspec import UNSET, UnsetType

from duologue.protocol.audio_formats import AudioFormat
from duologue.protocol.commands import ResponseAudioOutput, ResponseParams
from duologue.protocol.config_checks import (
    ANYTHING,
    Supported,
    check_instructions,
    check_max_tokens,
    check_modalities,
    check_temperature,
    check_tool_choice,
    check_tools,
    check_voice,
    merge_format,
)
from duologue.protocol.items import ResponseInput
from duologue.protocol.session_config import (
    FunctionTool,
    MaxTokens,
    Modality,
    SessionConfig,
    ToolChoice,
    Truncation,
    Voice,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseConfig:
    """What is in force for one response, from its start to its end."""

    instructions: str
    output_modalities: tuple[Modality, ...]
    output_format: AudioFormat
    voice: Voice
    speed: float
    tools: tuple[FunctionTool, ...]
    tool_choice: ToolChoice
    parallel_tool_calls: bool
    truncation: Truncation
    max_output_tokens: MaxTokens
    temperature: float | None = None
    metadata: dict[str, str] | None = None
    conversation: Literal["auto", "none"] = "auto"
    input: tuple[ResponseInput, ...] | None = None
    """None: the conversation."""

    interrupt: bool = False
    """An answer that is active or still sounds is stopped for this one."""


def response_config(
    session: SessionConfig,
    params: ResponseParams | UnsetType = UNSET,
    supported: Supported = ANYTHING,
) -> ResponseConfig:
    """Return what is in force for a response that is asked for now.

    Raises:
        ProtocolError: A value is not allowed; ``param`` names it.
        LimitExceeded: A text or a list is too long.
    """
    wanted = ResponseParams() if params is UNSET else params
    tools = session.tools if wanted.tools is UNSET else check_tools(wanted.tools, "response.tools")
    output = ResponseAudioOutput()
    if wanted.audio is not UNSET and wanted.audio.output is not UNSET:
        output = wanted.audio.output
    return ResponseConfig(
        instructions=session.instructions
        if wanted.instructions is UNSET
        else check_instructions(wanted.instructions, "response.instructions"),
        output_modalities=session.output_modalities
        if wanted.output_modalities is UNSET
        else check_modalities(wanted.output_modalities, "response.output_modalities"),
        output_format=session.output_format
        if output.format is UNSET
        else merge_format(session.output_format, output.format, "response.audio.output.format"),
        voice=session.voice
        if output.voice is UNSET
        else check_voice(output.voice, supported, "response.audio.output.voice"),
        speed=session.speed,
        tools=tools,
        tool_choice=session.tool_choice
        if wanted.tool_choice is UNSET
        else check_tool_choice(wanted.tool_choice, tools, "response.tool_choice"),
        parallel_tool_calls=session.parallel_tool_calls
        if wanted.parallel_tool_calls is UNSET
        else wanted.parallel_tool_calls,
        truncation=session.truncation,
        max_output_tokens=session.max_output_tokens
        if wanted.max_output_tokens is UNSET
        else check_max_tokens(wanted.max_output_tokens, "response.max_output_tokens"),
        temperature=session.temperature
        if wanted.temperature is UNSET
        else check_temperature(wanted.temperature, "response.temperature"),
        metadata=None if wanted.metadata is UNSET else wanted.metadata,
        conversation=wanted.conversation,
        input=None if wanted.input is UNSET else wanted.input,
        interrupt=wanted.interrupt,
    )
