"""A plugin without a model: it answers every request with lines from a script.

Each answer goes through the engine's ``scripted`` pipeline (words, then tones), so that a call
with this plugin visits every station that a real model visits. This module must not know turns,
sockets or time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from duologue.config import Section, parse_section
from duologue.duplex_plugins.contract import (
    CallFunction,
    Capabilities,
    EndResponse,
    Interrupted,
    ItemView,
    PluginConfig,
    PluginEffect,
    PluginInput,
    RequestEnded,
    RequestFailed,
    RequestOutput,
    ResponseOutcome,
    ResponseRequested,
    SayAudio,
    SayText,
    StartRequest,
)
from duologue.duplex_plugins.one_shot import OneShot
from duologue.engines.payloads import AudioChunk, SpeakText, SpeechMark

OUTPUTS = "{outputs}"
"""In a line: stands for the outputs of the functions that were called last."""


class ScriptedCall(Section):
    """A function call of a turn."""

    name: str
    """The function; the call is left out where the client does not offer it."""

    arguments: str = "{}"
    """JSON text."""


class ScriptedTurn(Section):
    """One answer: a line, calls, or both."""

    line: str = ""
    """What is said; ``{outputs}`` stands for the outputs of the functions that were called last."""

    calls: tuple[ScriptedCall, ...] = ()
    """Functions that are called, after the line."""

    calls_first: bool = False
    """The calls come before the line."""


class ScriptedSettings(Section):
    """What the plugin says."""

    pipeline: str = "scripted"
    """Pipeline that turns a line into audio."""

    chat_pipeline: str | None = "scripted_chat"
    """Pipeline that answers single chat requests, if it is there."""

    speech_pipeline: str | None = "scripted_speech"
    """Pipeline that speaks single texts, if it is there."""

    lines: tuple[str, ...] = ("Hello, this is a scripted answer.",)
    """One line per answer, in turn, then from the start."""

    turns: tuple[ScriptedTurn, ...] = ()
    """Answers with function calls, in turn, then from the start; instead of ``lines``."""

    credit_ms: int = 4000
    """Audio that the pipeline may be ahead of what was sent."""


@dataclass(slots=True)
class State:
    """One session.

    Args:
        answers: How many it has had.
        turns: Those that are still being said, by response id.
    """

    answers: int = 0
    turns: dict[str, ScriptedTurn] = field(default_factory=dict)


class ScriptedPlugin:
    """Says its lines, each in a request that is called as the response is."""

    def __init__(self, settings: ScriptedSettings) -> None:
        self._settings = settings
        lines = tuple(ScriptedTurn(line=line) for line in settings.lines)
        self._turns = settings.turns or lines

    def capabilities(self) -> Capabilities:
        """Speaks at 24 kHz; needs neither audio nor transcripts."""
        return Capabilities(
            input_rate_hz=16000,
            output_rate_hz=24000,
            one_shot=OneShot(
                chat=self._settings.chat_pipeline, speech=self._settings.speech_pipeline
            ),
        )

    def open(self, config: PluginConfig) -> State:
        """Start at the first line."""
        return State()

    def step(self, state: State, item: PluginInput) -> Sequence[PluginEffect]:
        """Turn what is asked into a request to the engine, and its output into speech."""
        match item:
            case ResponseRequested():
                return self._answer(state, item)
            case RequestOutput(key=response_id, payload=AudioChunk(pcm=pcm)):
                return [SayAudio(response_id, pcm)]
            case RequestOutput(key=response_id, payload=SpeechMark() as mark):
                return [SayAudio(response_id, b"", (mark,))]
            case RequestEnded(key=response_id):
                turn = state.turns.pop(response_id)
                calls = () if turn.calls_first else turn.calls
                return [*_calls(response_id, calls), EndResponse(response_id)]
            case RequestFailed(key=response_id, code=code):
                del state.turns[response_id]
                return [EndResponse(response_id, ResponseOutcome.FAILED, code)]
            case Interrupted(response_id=response_id):
                state.turns.pop(response_id, None)
                return []
            case _:
                return []

    def _answer(self, state: State, request: ResponseRequested) -> Sequence[PluginEffect]:
        response_id, tools = request.response_id, request.config.tools
        script = self._turns[state.answers % len(self._turns)]
        state.answers += 1
        turn = ScriptedTurn(
            line=script.line.replace(OUTPUTS, _outputs(request.conversation)),
            calls=tuple(call for call in script.calls if tools.allows(call.name)),
            calls_first=script.calls_first,
        )
        if not turn.line:
            return [*_calls(response_id, turn.calls), EndResponse(response_id)]
        state.turns[response_id] = turn
        return [
            *_calls(response_id, turn.calls if turn.calls_first else ()),
            SayText(response_id, turn.line),
            StartRequest(
                key=response_id,
                pipeline=self._settings.pipeline,
                first=SpeakText(turn.line, len(turn.line)),
                response_id=response_id,
                credit=self._settings.credit_ms,
            ),
        ]


def _calls(response_id: str, calls: Sequence[ScriptedCall]) -> list[PluginEffect]:
    """Return the calls, each in two pieces as a model would write it."""
    effects: list[PluginEffect] = []
    for number, call in enumerate(calls):
        half = len(call.arguments) // 2
        first, rest = call.arguments[:half], call.arguments[half:]
        key = str(number)
        effects.append(CallFunction(response_id, key, call.name, first, done=False))
        effects.append(CallFunction(response_id, key, call.name, rest))
    return effects


def _outputs(conversation: Sequence[ItemView]) -> str:
    """Return the outputs at the end of the conversation, in order."""
    outputs: list[str] = []
    for item in reversed(conversation):
        if item.role == "tool":
            outputs.append(item.text or "")
        elif item.call is None:
            break
    return " ".join(reversed(outputs))


def create(options: Mapping[str, object]) -> ScriptedPlugin:
    """Make the plugin from its block of the configuration."""
    return ScriptedPlugin(parse_section(ScriptedSettings, options, whose="plugin scripted"))
