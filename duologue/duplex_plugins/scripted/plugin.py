"""A plugin without a model: it answers every request with lines from a script.

Each answer goes through the engine's ``scripted`` pipeline (words, then tones), so that a call
with this plugin visits every station that a real model visits. This module must not know turns,
sockets or time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from duologue.config import Section, parse_section
from duologue.duplex_plugins.contract import (
    Capabilities,
    EndResponse,
    PluginConfig,
    PluginEffect,
    PluginInput,
    ResponseOutcome,
    ResponseRequested,
    SayAudio,
    SayText,
    StageEnded,
    StageFailed,
    StageOutput,
    StartStage,
)
from duologue.engines.payloads import AudioChunk, SpeakText, SpeechMark


class ScriptedSettings(Section):
    """What the plugin says."""

    pipeline: str = "scripted"
    """Pipeline that turns a line into audio."""

    lines: tuple[str, ...] = ("Hello, this is a scripted answer.",)
    """One line per answer, in turn, then from the start."""

    credit_ms: int = 4000
    """Audio that the pipeline may be ahead of what was sent."""


@dataclass(slots=True)
class State:
    """One session: how many answers it has had."""

    answers: int = 0


class ScriptedPlugin:
    """Says its lines, each in a stage that is called as the response is."""

    def __init__(self, settings: ScriptedSettings) -> None:
        self._settings = settings

    def capabilities(self) -> Capabilities:
        """Speaks at 24 kHz; needs neither audio nor transcripts."""
        return Capabilities(input_rate_hz=16000, output_rate_hz=24000)

    def open(self, config: PluginConfig) -> State:
        """Start at the first line."""
        return State()

    def step(self, state: State, item: PluginInput) -> Sequence[PluginEffect]:
        """Turn a request into a stage, and the stage's output into speech.

        An interruption needs no thought: the stage is cancelled with its response.
        """
        match item:
            case ResponseRequested(response_id=response_id):
                return self._answer(state, response_id)
            case StageOutput(key=response_id, payload=AudioChunk(pcm=pcm)):
                return [SayAudio(response_id, pcm)]
            case StageOutput(key=response_id, payload=SpeechMark() as mark):
                return [SayAudio(response_id, b"", (mark,))]
            case StageEnded(key=response_id):
                return [EndResponse(response_id)]
            case StageFailed(key=response_id, code=code):
                return [EndResponse(response_id, ResponseOutcome.FAILED, code)]
            case _:
                return []

    def _answer(self, state: State, response_id: str) -> Sequence[PluginEffect]:
        lines = self._settings.lines
        line = lines[state.answers % len(lines)]
        state.answers += 1
        return [
            SayText(response_id, line),
            StartStage(
                key=response_id,
                pipeline=self._settings.pipeline,
                first=SpeakText(line, len(line)),
                response_id=response_id,
                credit=self._settings.credit_ms,
            ),
        ]


def create(options: Mapping[str, object]) -> ScriptedPlugin:
    """Make the plugin from its block of the configuration."""
    return ScriptedPlugin(parse_section(ScriptedSettings, options, whose="plugin scripted"))
