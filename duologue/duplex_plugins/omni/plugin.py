"""The policy of a model that does all by itself: a conversation in, its answer out, said aloud.

Of each of the person's turns the model gets the sound, not a transcript, and of each answer the
words and the speech come from one request. This module must not know models, sockets or time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from duologue.config import parse_section
from duologue.core.audio import SAMPLE_BYTES, AudioFrame
from duologue.core.errors import LimitExceeded
from duologue.duplex_plugins.contract import (
    Capabilities,
    ConfigChanged,
    ConversationChanged,
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
    Turn,
)
from duologue.duplex_plugins.function_calls import FunctionCalls
from duologue.duplex_plugins.omni.settings import OmniSettings
from duologue.duplex_plugins.prompts.conversation import joined, unanswered
from duologue.duplex_plugins.prompts.retained import retained, tokens, tool_tokens
from duologue.engines.payloads import (
    AudioChunk,
    ChatMessage,
    ChatRequest,
    Payload,
    SpeechMark,
    TextDelta,
    TokenUsage,
    ToolCallDelta,
)

HEARD_RATE_HZ = 16_000


@dataclass(slots=True)
class _Answer:
    """One answer that is being found and said."""

    response_id: str
    request: ChatRequest
    calls: FunctionCalls = field(default_factory=FunctionCalls)
    usage: TokenUsage | None = None


@dataclass(slots=True)
class State:
    """One session.

    Args:
        heard: What the person said, by item, oldest first.
        answers: By the key of their request.
    """

    config: PluginConfig
    heard: dict[str, bytes] = field(default_factory=dict)
    answers: dict[str, _Answer] = field(default_factory=dict)
    keys: int = 0


class OmniPlugin:
    """Detectors find the turns; all else is one pipeline's."""

    def __init__(self, settings: OmniSettings) -> None:
        self._settings = settings
        self._kept_bytes = int(settings.recordings_s * HEARD_RATE_HZ) * SAMPLE_BYTES

    def capabilities(self) -> Capabilities:
        """Hears turns as they are, and reads no transcripts."""
        return Capabilities(
            input_rate_hz=HEARD_RATE_HZ,
            hears_turns=True,
            voices=self._settings.voices,
            sees=self._settings.sees,
        )

    def open(self, config: PluginConfig) -> State:
        """Begin with an empty conversation."""
        return State(config)

    def step(self, state: State, item: PluginInput) -> Sequence[PluginEffect]:
        """Advance by one input."""
        match item:
            case Turn(item_id=item_id, recording=AudioFrame() as frame):
                self._hear(state, item_id, frame.pcm)
            case ConversationChanged(conversation=conversation):
                # What was deleted is not to be heard again.
                known = {each.id for each in conversation}
                state.heard = {key: pcm for key, pcm in state.heard.items() if key in known}
            case ConfigChanged(config=config):
                state.config = config
            case ResponseRequested():
                return list(self._requested(state, item))
            case RequestOutput(key=key, payload=payload) if key in state.answers:
                return list(_said(state.answers[key], payload))
            case RequestEnded(key=key) if key in state.answers:
                return list(_ended(state.answers.pop(key)))
            case RequestFailed(key=key, code=code) if key in state.answers:
                answer = state.answers.pop(key)
                return [EndResponse(answer.response_id, ResponseOutcome.FAILED, code)]
            case Interrupted(response_id=response_id):
                for key in [k for k, a in state.answers.items() if a.response_id == response_id]:
                    del state.answers[key]
            case _:
                pass
        return ()

    def _hear(self, state: State, item_id: str, pcm: bytes) -> None:
        """Keep a turn, and of those before it the newest that there is room for."""
        state.heard[item_id] = pcm[-self._kept_bytes :]
        while sum(map(len, state.heard.values())) > self._kept_bytes:
            del state.heard[next(iter(state.heard))]

    def _requested(self, state: State, asked: ResponseRequested) -> Iterator[PluginEffect]:
        turns = unanswered(asked.conversation)
        if turns and not any(_says_something(state, turn) for turn in turns):
            yield EndResponse(asked.response_id)
            return
        try:
            request = self._request(state, asked)
        except LimitExceeded as exc:
            yield EndResponse(asked.response_id, ResponseOutcome.FAILED, exc.code)
            return
        state.keys += 1
        key = f"answer-{state.keys}"
        state.answers[key] = _Answer(asked.response_id, request)
        # Pieces of text take of the credit, too, and what they take is never granted back.
        credit = self._settings.speech_credit_ms + request.max_tokens
        yield StartRequest(
            key=key,
            pipeline=self._settings.pipeline,
            first=request,
            response_id=asked.response_id,
            credit=credit if asked.config.audio_out else None,
        )

    def _request(self, state: State, asked: ResponseRequested) -> ChatRequest:
        """Build the prompt of an answer.

        Raises:
            LimitExceeded: The conversation is too long, and nothing of it may be left out.
        """
        settings, config = self._settings, asked.config
        system = "\n\n".join(filter(None, (settings.persona, config.instructions)))
        fixed = [ChatMessage("system", system)] if system else []
        room = settings.prompt_tokens - tokens(fixed) - tool_tokens(config.tools)
        messages = joined(asked.conversation, state.heard)
        kept = retained(messages, room, config.retention, settings.picture_tokens)
        limit, asked_for = settings.max_output_tokens, config.max_output_tokens
        return ChatRequest(
            messages=(*fixed, *kept),
            max_tokens=limit if asked_for is None else min(limit, asked_for),
            temperature=settings.temperature if config.temperature is None else config.temperature,
            tools=config.tools,
            voice=(config.voice or settings.voices[0]) if config.audio_out else None,
        )


def _says_something(state: State, turn: ItemView) -> bool:
    words = turn.text is not None and bool(turn.text.strip())
    return words or turn.silence or bool(turn.images) or turn.id in state.heard


def _said(answer: _Answer, payload: Payload) -> Iterator[PluginEffect]:
    match payload:
        case TextDelta(text=text):
            yield SayText(answer.response_id, text)
        case AudioChunk(pcm=pcm):
            yield SayAudio(answer.response_id, pcm)
        case SpeechMark():
            yield SayAudio(answer.response_id, b"", (payload,))
        case ToolCallDelta():
            answer.calls.add(payload)
        case TokenUsage():
            answer.usage = payload
        case _:
            pass


def _ended(answer: _Answer) -> Iterator[PluginEffect]:
    request = answer.request
    yield from answer.calls.end(answer.response_id, request.tools, answer.usage, request.max_tokens)


def create(options: Mapping[str, object]) -> OmniPlugin:
    """Make the plugin from its block of the configuration."""
    return OmniPlugin(parse_section(OmniSettings, options, whose="plugin omni"))
