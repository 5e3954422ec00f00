"""The client's configuration in the plugin's terms, and what a plugin's abilities allow.

This module must not know when a configuration changes.
"""

from __future__ import annotations

import functools

import msgspec

from duologue.duplex_plugins.contract import Capabilities, PluginConfig
from duologue.duplex_plugins.persona import AS_IT_LIKES, Draws
from duologue.duplex_plugins.retention import Retention
from duologue.engines.payloads import Tools, ToolSpec
from duologue.protocol.config_checks import Supported
from duologue.protocol.response_config import ResponseConfig
from duologue.protocol.session_config import (
    CustomVoice,
    FunctionChoice,
    FunctionTool,
    RetentionRatio,
    SessionConfig,
    Truncation,
    Voice,
)

OPENAI_VOICES = frozenset(
    (
        *("alloy", "ash", "ballad", "cedar", "coral", "echo", "fable"),
        *("marin", "nova", "onyx", "sage", "shimmer", "verse"),
    )
)
"""Names that stock clients send unasked; each means the model's default voice."""


@functools.lru_cache(maxsize=64)
def supported_by(
    capabilities: Capabilities, detectors: frozenset[str], *, recogniser: bool = True
) -> Supported:
    """Return what a session with this model can be set to.

    Args:
        capabilities: Of the model.
        detectors: The kinds of turn detection that the engine has stages for.
        recogniser: The engine has one.
    """
    return Supported(
        voices=frozenset(capabilities.voices) | OPENAI_VOICES,
        turn_detection=detectors,
        transcribes=recogniser and not capabilities.decides_turns,
        reads_instructions=capabilities.persona.reads_instructions,
        sampling=capabilities.persona.sampling,
    )


def plugin_config(
    config: SessionConfig | ResponseConfig, capabilities: Capabilities
) -> PluginConfig:
    """Return what a model is told of a session's or response's configuration."""
    limit = config.max_output_tokens
    return PluginConfig(
        instructions=config.instructions,
        voice=_voice(config.voice, capabilities),
        speed=config.speed,
        temperature=config.temperature,
        draws=_draws(config),
        max_output_tokens=None if limit == "inf" else limit,
        audio_out="audio" in config.output_modalities and capabilities.speaks,
        tools=_tools(config),
        retention=_retention(config.truncation),
    )


def _draws(config: SessionConfig | ResponseConfig) -> Draws:
    """An answer draws as its session does."""
    if not isinstance(config, SessionConfig) or config.duplex is None:
        return AS_IT_LIKES
    return Draws(top_k=config.duplex.top_k, seed=config.duplex.seed)


def _tools(config: SessionConfig | ResponseConfig) -> Tools:
    functions = tuple(_tool(tool) for tool in config.tools)
    choice, parallel = config.tool_choice, config.parallel_tool_calls
    if isinstance(choice, FunctionChoice):
        named = Tools(functions, "required", choice.name, parallel)
        # A choice of the session outlives a change of its tools, and must not break its answers.
        return named if named.allows(choice.name) else Tools(functions, parallel=parallel)
    if choice == "required" and not functions:
        return Tools(parallel=parallel)
    return Tools(functions, choice, parallel=parallel)


def _tool(tool: FunctionTool) -> ToolSpec:
    if tool.parameters is None:
        return ToolSpec(tool.name, tool.description or "")
    parameters = msgspec.json.encode(tool.parameters).decode()
    return ToolSpec(tool.name, tool.description or "", parameters)


def _retention(truncation: Truncation) -> Retention:
    if not isinstance(truncation, RetentionRatio):
        return Retention(allowed=truncation == "auto")
    limits = truncation.token_limits
    return Retention(
        keep=truncation.retention_ratio,
        max_tokens=None if limits is None else limits.post_instructions,
    )


def _voice(voice: Voice, capabilities: Capabilities) -> str:
    name = voice.id if isinstance(voice, CustomVoice) else voice
    return name if name in capabilities.voices else capabilities.voices[0]
