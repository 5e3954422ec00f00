"""The policy of the cascade: transcripts in, a model's answer out, spoken clause by clause.

The answer is begun on speculation at the first short silence, with the prompt that is expected; if
the prompt that is asked for in the end is the same one, the work is adopted, else thrown away. So
being right about the prompt only saves time. This module must not know models, sockets or time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from duologue.config import parse_section
from duologue.core.errors import LimitExceeded
from duologue.duplex_plugins.cascaded.answer import Answer
from duologue.duplex_plugins.cascaded.prompt import chat_request, prefill_request
from duologue.duplex_plugins.cascaded.settings import CascadedSettings
from duologue.duplex_plugins.contract import (
    AdoptRequest,
    BeginResponse,
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
    StartRequest,
    StopRequest,
    TranscriptKind,
    Turn,
    TurnKind,
    UserTranscript,
)
from duologue.duplex_plugins.one_shot import OneShot
from duologue.duplex_plugins.prompts.conversation import unanswered
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

_UNSURE = " .,;:!?…-—"
"""What a recogniser ends half a sentence with says nothing."""

_Written = TextDelta | ToolCallDelta | TokenUsage


@dataclass(slots=True)
class _Draft:
    """What a language model writes, for a response or on speculation.

    Args:
        key: Of its request.
        answer: Where the text goes; ``None``: nobody has asked for it yet, so it is kept.
        kept: Outputs since then.
        item_id: The turn that a speculation is about.
    """

    key: str
    request: ChatRequest
    answer: Answer | None = None
    kept: list[_Written] = field(default_factory=list)
    ended: bool = False
    item_id: str = ""


@dataclass(slots=True)
class State:
    """One session.

    Args:
        history: The conversation: with what the person is saying, the best guess at the next
            prompt.
        drafts: By key, those that are being written for a response.
        answers: By response id.
        speculation: An answer that nobody has asked for yet.
        waiting: Requests whose prompt still lacks what the person just said.
        prefill_key: The request that reads ahead.
        read: The newest prompt; the model has it in its cache, if it has one.
        idle_turns: Turns since the last request: a client that answers itself, or not at all,
            needs no speculation.
    """

    config: PluginConfig
    history: tuple[ItemView, ...] = ()
    drafts: dict[str, _Draft] = field(default_factory=dict)
    answers: dict[str, Answer] = field(default_factory=dict)
    speculation: _Draft | None = None
    waiting: dict[str, ResponseRequested] = field(default_factory=dict)
    prefill_key: str | None = None
    read: tuple[ChatMessage, ...] = ()
    pausing: bool = False
    idle_turns: int = 0
    greeting: bool = False
    keys: int = 0


class CascadedPlugin:
    """Speech recognition is the session's; the rest of the chain is here."""

    def __init__(self, settings: CascadedSettings) -> None:
        self._settings = settings

    def capabilities(self) -> Capabilities:
        """Reads transcripts; the prompt is made anew from the history for every answer."""
        settings = self._settings
        return Capabilities(
            reads_transcripts=True,
            voices=settings.voices,
            sees=settings.sees,
            one_shot=OneShot(
                chat=settings.llm_pipeline,
                adapter=settings.llm_adapter,
                speech=settings.tts_pipeline,
                speeds=(settings.slowest_speech, settings.fastest_speech),
            ),
        )

    def open(self, config: PluginConfig) -> State:
        """Begin with an empty conversation."""
        return State(config, greeting=bool(self._settings.greeting))

    def step(self, state: State, item: PluginInput) -> Sequence[PluginEffect]:
        """Advance by one input."""
        return list(self._step(state, item))

    def _step(self, state: State, item: PluginInput) -> Iterator[PluginEffect]:
        match item:
            case RequestOutput(key=key, payload=payload):
                yield from self._output(state, key, payload)
            case RequestEnded(key=key):
                yield from self._ended(state, key)
            case RequestFailed(key=key, code=code):
                yield from self._failed(state, key, code)
            case Turn():
                yield from self._turn(state, item)
            case UserTranscript():
                yield from self._transcript(state, item)
            case ResponseRequested():
                yield from self._requested(state, item)
            case Interrupted(response_id=response_id):
                self._interrupted(state, response_id)
            case ConfigChanged(config=config):
                yield from self._configured(state, config)
            case ConversationChanged(conversation=conversation):
                state.history = conversation
            case _:
                pass

    # The person

    def _turn(self, state: State, turn: Turn) -> Iterator[PluginEffect]:
        state.pausing = turn.kind is TurnKind.PAUSING
        state.greeting = False
        match turn.kind:
            case TurnKind.STARTED:
                yield from self._drop_speculation(state)
                yield from self._prefill(state, state.history)
            case TurnKind.RESUMED | TurnKind.ABANDONED:
                yield from self._drop_speculation(state)
            case TurnKind.COMMITTED:
                state.idle_turns += 1
            case TurnKind.PAUSING:
                pass

    def _transcript(self, state: State, transcript: UserTranscript) -> Iterator[PluginEffect]:
        item_id, text = transcript.item_id, transcript.text
        match transcript.kind:
            case TranscriptKind.PARTIAL if self._may_read_on(state):
                said = _with_text(state.history, item_id, text.rstrip(_UNSURE))
                yield from self._prefill(state, said)
            case TranscriptKind.SPECULATIVE if state.pausing and not state.idle_turns:
                yield from self._speculate(state, item_id, text)
            case TranscriptKind.FINAL:
                for request in list(state.waiting.values()):
                    view = _with_text(request.conversation, item_id, text)
                    yield from self._requested(state, replace(request, conversation=view))
                if state.speculation is not None and state.speculation.item_id == item_id:
                    yield from self._speculate(state, item_id, text)
            case _:
                pass

    def _speculate(self, state: State, item_id: str, text: str) -> Iterator[PluginEffect]:
        if not self._settings.speculate or state.answers:
            return
        view = _with_text(state.history, item_id, text)
        try:
            request = chat_request(view, state.config, self._settings)
        except LimitExceeded:
            # The answer itself will say so.
            return
        if state.speculation is not None and state.speculation.request == request:
            return
        yield from self._drop_speculation(state)
        if text.strip():
            yield from self._stop_prefill(state)
            draft = _Draft(self._new_key(state, "llm"), request, item_id=item_id)
            state.speculation = draft
            yield self._ask_model(state, draft.key, request)

    def _drop_speculation(self, state: State) -> Iterator[PluginEffect]:
        draft, state.speculation = state.speculation, None
        if draft is not None and not draft.ended:
            yield StopRequest(draft.key)

    @staticmethod
    def _may_read_on(state: State) -> bool:
        """Tell whether half a sentence is worth reading: the rest of it is read sooner then."""
        busy = state.pausing or state.speculation is not None or state.prefill_key is not None
        return not (busy or state.waiting or state.idle_turns)

    def _prefill(self, state: State, conversation: tuple[ItemView, ...]) -> Iterator[PluginEffect]:
        if not self._settings.prefill or state.answers:
            return
        try:
            request = prefill_request(conversation, state.config, self._settings)
        except LimitExceeded:
            return
        if _has_read(state.read, request.messages):
            return
        yield from self._stop_prefill(state)
        state.prefill_key = self._new_key(state, "prefill")
        yield self._ask_model(state, state.prefill_key, request)

    def _ask_model(
        self, state: State, key: str, request: ChatRequest, response_id: str | None = None
    ) -> StartRequest:
        state.read = request.messages
        return StartRequest(
            key=key,
            pipeline=self._settings.llm_pipeline,
            first=request,
            response_id=response_id,
        )

    def _stop_prefill(self, state: State) -> Iterator[PluginEffect]:
        if state.prefill_key is not None:
            yield StopRequest(state.prefill_key)
            state.prefill_key = None

    # The client

    def _configured(self, state: State, config: PluginConfig) -> Iterator[PluginEffect]:
        state.config = config
        yield from self._prefill(state, state.history)
        if state.greeting:
            yield BeginResponse()

    def _requested(self, state: State, request: ResponseRequested) -> Iterator[PluginEffect]:
        state.idle_turns = 0
        state.waiting.pop(request.response_id, None)
        turns = unanswered(request.conversation)
        if any(turn.text is None for turn in turns):
            state.waiting[request.response_id] = request
            return
        said_nothing = turns and not any(
            turn.silence or (turn.text and turn.text.strip()) for turn in turns
        )
        if said_nothing:
            yield EndResponse(request.response_id)
        elif state.greeting and not request.conversation:
            yield from self._greet(state, request)
        else:
            yield from self._answer(state, request)

    def _greet(self, state: State, request: ResponseRequested) -> Iterator[PluginEffect]:
        state.greeting = False
        answer = self._new_answer(state, request, self._settings.max_output_tokens)
        yield from answer.on_text(self._settings.greeting)
        yield from self._followed(state, answer, answer.on_written())

    def _answer(self, state: State, request: ResponseRequested) -> Iterator[PluginEffect]:
        try:
            prompt = chat_request(request.conversation, request.config, self._settings)
        except LimitExceeded as exc:
            yield EndResponse(request.response_id, ResponseOutcome.FAILED, exc.code)
            return
        draft = state.speculation
        yield from self._stop_prefill(state)
        if draft is not None and draft.request == prompt:
            state.speculation = None
            if not draft.ended:
                yield AdoptRequest(draft.key, request.response_id)
        else:
            yield from self._drop_speculation(state)
            draft = _Draft(self._new_key(state, "llm"), prompt)
            yield self._ask_model(state, draft.key, prompt, request.response_id)
        # It may call what its prompt offers.
        request = replace(request, config=replace(request.config, tools=prompt.tools))
        draft.answer = self._new_answer(state, request, prompt.max_tokens)
        state.drafts[draft.key] = draft
        for output in draft.kept:
            yield from self._written(draft.answer, output)
        if draft.ended:
            yield from self._draft_ended(state, draft)

    def _new_answer(self, state: State, request: ResponseRequested, max_tokens: int) -> Answer:
        answer = Answer(
            request.response_id,
            self._new_key(state, "tts"),
            request.config,
            self._settings,
            max_tokens,
        )
        state.answers[request.response_id] = answer
        return answer

    def _interrupted(self, state: State, response_id: str) -> None:
        """Forget a response; what was heard of it comes with the conversation."""
        state.waiting.pop(response_id, None)
        answer = state.answers.pop(response_id, None)
        if answer is not None:
            self._forget_draft_of(state, answer)

    # The requests

    def _output(self, state: State, key: str, payload: Payload) -> Iterator[PluginEffect]:
        draft = state.drafts.get(key)
        if draft is None and state.speculation is not None and state.speculation.key == key:
            draft = state.speculation
        match payload:
            case TextDelta() | ToolCallDelta() | TokenUsage() if draft is not None:
                if draft.answer is None:
                    draft.kept.append(payload)
                else:
                    yield from self._written(draft.answer, payload)
            case AudioChunk() if (answer := self._speaker(state, key)) is not None:
                yield from answer.on_audio(payload)
            case SpeechMark() if (answer := self._speaker(state, key)) is not None:
                yield from answer.on_mark(payload)
            case _:
                pass

    @staticmethod
    def _written(answer: Answer, output: _Written) -> Iterator[PluginEffect]:
        match output:
            case TextDelta(text=text):
                yield from answer.on_text(text)
            case ToolCallDelta():
                answer.on_call(output)
            case TokenUsage():
                answer.on_usage(output)

    def _ended(self, state: State, key: str) -> Iterator[PluginEffect]:
        if key == state.prefill_key:
            state.prefill_key = None
        elif state.speculation is not None and state.speculation.key == key:
            state.speculation.ended = True
        elif key in state.drafts:
            yield from self._draft_ended(state, state.drafts[key])
        elif (answer := self._speaker(state, key)) is not None:
            yield from self._followed(state, answer, answer.on_voice_ended())

    def _draft_ended(self, state: State, draft: _Draft) -> Iterator[PluginEffect]:
        del state.drafts[draft.key]
        assert draft.answer is not None
        yield from self._followed(state, draft.answer, draft.answer.on_written())

    def _failed(self, state: State, key: str, code: str) -> Iterator[PluginEffect]:
        if key == state.prefill_key:
            state.prefill_key = None
        elif state.speculation is not None and state.speculation.key == key:
            state.speculation = None
        elif key in state.drafts:
            answer = state.drafts.pop(key).answer
            assert answer is not None
            if answer.voice_runs:
                yield StopRequest(answer.voice_key)
            yield self._fail(state, answer, code)
        elif (speaker := self._speaker(state, key)) is not None:
            for unfinished in self._forget_draft_of(state, speaker):
                yield StopRequest(unfinished)
            yield self._fail(state, speaker, code)

    @staticmethod
    def _fail(state: State, answer: Answer, code: str) -> PluginEffect:
        del state.answers[answer.response_id]
        return EndResponse(answer.response_id, ResponseOutcome.FAILED, code)

    def _followed(
        self, state: State, answer: Answer, effects: Iterator[PluginEffect]
    ) -> Iterator[PluginEffect]:
        """Pass effects on; the last of an answer may be its end."""
        for effect in effects:
            if isinstance(effect, EndResponse):
                for key in self._forget_draft_of(state, answer):
                    yield StopRequest(key)
                del state.answers[answer.response_id]
            yield effect

    @staticmethod
    def _forget_draft_of(state: State, answer: Answer) -> list[str]:
        keys = [key for key, draft in state.drafts.items() if draft.answer is answer]
        for key in keys:
            del state.drafts[key]
        return keys

    @staticmethod
    def _speaker(state: State, key: str) -> Answer | None:
        return next((a for a in state.answers.values() if a.voice_key == key), None)

    @staticmethod
    def _new_key(state: State, kind: str) -> str:
        state.keys += 1
        return f"{kind}-{state.keys}"


def _has_read(read: tuple[ChatMessage, ...], messages: tuple[ChatMessage, ...]) -> bool:
    """Tell whether ``messages`` hold nothing new; of the last one the beginning is enough."""
    *known, last = messages
    same = read[len(known) : len(messages)]
    return (
        read[: len(known)] == tuple(known)
        and bool(same)
        and same[0].role == last.role
        and same[0].content.startswith(last.content)
    )


def _with_text(conversation: tuple[ItemView, ...], item_id: str, text: str) -> tuple[ItemView, ...]:
    """Return the conversation with the person's words in an item, which may be new."""
    if any(item.id == item_id for item in conversation):
        return tuple(
            replace(item, text=text) if item.id == item_id else item for item in conversation
        )
    return (*conversation, ItemView(id=item_id, role="user", text=text))


def create(options: Mapping[str, object]) -> CascadedPlugin:
    """Make the plugin from its block of the configuration."""
    return CascadedPlugin(parse_section(CascadedSettings, options, whose="plugin cascaded"))
