"""What a session and an engine make of the plugin's effects, with the contract as assertions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from duologue.duplex_plugins.cascaded.plugin import CascadedPlugin
from duologue.duplex_plugins.cascaded.settings import CascadedSettings
from duologue.duplex_plugins.contract import (
    AdoptRequest,
    AppendToRequest,
    BeginResponse,
    CallFunction,
    EndResponse,
    FinishRequest,
    Interrupted,
    PluginConfig,
    PluginEffect,
    PluginInput,
    RequestEnded,
    RequestFailed,
    RequestOutput,
    ResponseOutcome,
    SayAudio,
    SayText,
    StartRequest,
    StopRequest,
)
from duologue.engines.payloads import ChatRequest, SpeakText, SpeechMark


@dataclass
class Stage:
    key: str
    pipeline: str
    response_id: str | None
    request: ChatRequest | None = None
    clauses: list[SpeakText] = field(default_factory=list)
    spoken: int = 0
    more_input: bool = False


@dataclass
class Response:
    audio: bool
    text: str = ""
    end: EndResponse | None = None
    stopped: bool = False
    llm_stages: int = 0
    clause_ends: list[int] = field(default_factory=list)
    marks: list[int] = field(default_factory=list)
    calls: list[tuple[str, str]] = field(default_factory=list)

    @property
    def active(self) -> bool:
        return self.end is None and not self.stopped


class SessionModel:
    """Keeps the stages and the responses, and objects to what the contract does not allow."""

    def __init__(self, settings: CascadedSettings | None = None) -> None:
        self.plugin = CascadedPlugin(settings or CascadedSettings())
        self.state = self.plugin.open(PluginConfig())
        self.stages: dict[str, Stage] = {}
        self.responses: dict[str, Response] = {}
        self.used_keys: set[str] = set()
        self.begun = 0

    def give(self, item: PluginInput) -> Sequence[PluginEffect]:
        effects = self.plugin.step(self.state, item)
        for effect in effects:
            self._apply(effect)
        return effects

    def end_stage(self, key: str) -> Sequence[PluginEffect]:
        del self.stages[key]
        return self.give(RequestEnded(key))

    def fail_stage(self, key: str, code: str = "broken") -> Sequence[PluginEffect]:
        del self.stages[key]
        return self.give(RequestFailed(key, code))

    def output(self, key: str, *payloads: object) -> list[PluginEffect]:
        effects: list[PluginEffect] = []
        for payload in payloads:
            if key in self.stages:
                effects += self.give(RequestOutput(key, payload))
        return effects

    def interrupt(self, response_id: str, heard: str = "") -> None:
        response = self.responses[response_id]
        response.stopped = True
        for key in [key for key, s in self.stages.items() if s.response_id == response_id]:
            del self.stages[key]
        assert self.give(Interrupted(response_id, heard)) == []

    def running(self, pipeline: str) -> list[Stage]:
        return [stage for stage in self.stages.values() if stage.pipeline == pipeline]

    def of(self, response_id: str, pipeline: str) -> Stage | None:
        found = [s for s in self.running(pipeline) if s.response_id == response_id]
        assert len(found) <= 1
        return found[0] if found else None

    def _apply(self, effect: PluginEffect) -> None:
        match effect:
            case StartRequest():
                self._start(effect)
            case AppendToRequest(key=key, payload=payload):
                stage = self.stages[key]
                assert stage.more_input
                assert isinstance(payload, SpeakText)
                self._clause(stage, payload)
            case FinishRequest(key=key):
                assert self.stages[key].more_input
                self.stages[key].more_input = False
            case StopRequest(key=key):
                del self.stages[key]
            case AdoptRequest(key=key, response_id=response_id):
                assert self.stages[key].response_id is None
                self.stages[key].response_id = response_id
                self._count_llm(response_id)
            case SayText(response_id=response_id, text=text):
                assert self.responses[response_id].active
                assert text
                self.responses[response_id].text += text
            case SayAudio(response_id=response_id, marks=marks):
                response = self.responses[response_id]
                assert response.active
                for mark in marks:
                    assert mark.text_end <= len(response.text), "the mark is ahead of its text"
                    response.marks.append(mark.text_end)
            case CallFunction(response_id=response_id, name=name, arguments=arguments, done=done):
                response = self.responses[response_id]
                assert response.active
                assert done
                assert not response.clause_ends or response.clause_ends[-1] == len(response.text)
                response.calls.append((name, arguments))
            case EndResponse(response_id=response_id):
                self._end(effect, self.responses[response_id])
            case BeginResponse():
                self.begun += 1

    def _start(self, effect: StartRequest) -> None:
        assert effect.key not in self.used_keys
        self.used_keys.add(effect.key)
        stage = Stage(effect.key, effect.pipeline, effect.response_id, more_input=effect.more_input)
        if effect.response_id is not None:
            assert self.responses[effect.response_id].active
        self.stages[effect.key] = stage
        match effect.first:
            case ChatRequest() as request:
                assert effect.pipeline == "llm"
                stage.request = request
                if effect.response_id is not None:
                    self._count_llm(effect.response_id)
            case SpeakText() as clause:
                assert effect.pipeline == "tts"
                self._clause(stage, clause)
            case other:
                raise AssertionError(f"a stage begins with {other}")

    def _clause(self, stage: Stage, clause: SpeakText) -> None:
        assert stage.response_id is not None
        ends = self.responses[stage.response_id].clause_ends
        assert clause.text_end > (ends[-1] if ends else 0)
        assert all(end <= clause.text_end for _, end in clause.word_ends)
        ends.append(clause.text_end)
        stage.clauses.append(clause)

    def _count_llm(self, response_id: str) -> None:
        response = self.responses[response_id]
        response.llm_stages += 1
        assert response.llm_stages == 1, "one prompt, one answer"

    def _end(self, effect: EndResponse, response: Response) -> None:
        assert response.active
        response.end = effect
        left = [s.key for s in self.stages.values() if s.response_id == effect.response_id]
        assert left == [], "stages of a response that is over"
        if effect.outcome is not ResponseOutcome.FAILED and response.clause_ends:
            assert response.clause_ends[-1] == len(response.text)

    def speak_all(self, key: str, samples: int = 100) -> None:
        """Let a voice say every clause that it has."""
        from duologue.engines.payloads import AudioChunk

        while key in self.stages and self.stages[key].spoken < len(self.stages[key].clauses):
            stage = self.stages[key]
            clause = stage.clauses[stage.spoken]
            start = stage.spoken * samples
            stage.spoken += 1
            if clause.text:
                self.output(key, AudioChunk(bytes(2 * samples), 24_000, start))
            self.output(key, SpeechMark(clause.text_end, start + samples))
