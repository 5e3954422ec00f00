"""A plugin that remembers what it was told, and speaks as its request or a test says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from duologue.duplex_plugins.contract import (
    CallFunction,
    Capabilities,
    EndResponse,
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
from duologue.engines.payloads import AudioChunk, SpeechMark, TextDelta, ToolCallDelta

I = TypeVar("I", bound=PluginInput)  # noqa: E741

STAGE = "talk"
"""The pipeline that its answers come from."""


class FakePlugin:
    """Implements ``DuplexPlugin``, for one session at a time.

    Args:
        answers: Start a request, called as the response is, for each answer, and say its outputs.
            Else a request leads to nothing but what ``then`` says.
        credit: Of these requests.
    """

    def __init__(
        self,
        capabilities: Capabilities | None = None,
        *,
        answers: bool = True,
        credit: int | None = None,
    ) -> None:
        self.seen: list[PluginInput] = []
        self._capabilities = capabilities or Capabilities()
        self._answers = answers
        self._credit = credit
        self._next: list[PluginEffect] = []
        self._calls = 0
        self._half: dict[str, str] = {}

    def then(self, *effects: PluginEffect) -> None:
        """Say these at the next input, whatever it is."""
        self._next.extend(effects)

    def of(self, kind: type[I]) -> list[I]:
        """All inputs of a kind, in order."""
        return [item for item in self.seen if isinstance(item, kind)]

    @property
    def prompts(self) -> list[list[tuple[str, str | None]]]:
        """Role and text of each item, for each request."""
        return [
            [(item.role, item.text) for item in request.conversation]
            for request in self.of(ResponseRequested)
        ]

    # DuplexPlugin

    def capabilities(self) -> Capabilities:
        return self._capabilities

    def open(self, config: PluginConfig) -> FakePlugin:
        return self

    def step(self, state: FakePlugin, item: PluginInput) -> Sequence[PluginEffect]:
        state.seen.append(item)
        effects, state._next = state._next, []
        return [*effects, *state._of_stage(item)]

    def _call(self, response_id: str, piece: ToolCallDelta) -> PluginEffect:
        """Call a function; a piece with ``call_id`` "more" is half a call, and others follow it."""
        half = piece.call_id == "more"
        call = self._half.pop(response_id, None)
        if call is None:
            self._calls += 1
            call = str(self._calls)
        if half:
            self._half[response_id] = call
        return CallFunction(response_id, call, piece.name, piece.arguments, done=not half)

    def _of_stage(self, item: PluginInput) -> list[PluginEffect]:
        if not self._answers:
            return []
        if isinstance(item, RequestOutput) and not isinstance(item.payload, ToolCallDelta):
            self._half.pop(item.key, None)
        match item:
            case ResponseRequested(response_id=response_id):
                return [
                    StartRequest(
                        key=response_id,
                        pipeline=STAGE,
                        response_id=response_id,
                        more_input=True,
                        credit=self._credit,
                    )
                ]
            case RequestOutput(key=key, payload=AudioChunk(pcm=pcm)):
                return [SayAudio(key, pcm)]
            case RequestOutput(key=key, payload=TextDelta(text=text)):
                return [SayText(key, text)]
            case RequestOutput(key=key, payload=SpeechMark() as mark):
                return [SayAudio(key, b"", (mark,))]
            case RequestOutput(key=key, payload=ToolCallDelta() as piece):
                return [self._call(key, piece)]
            case RequestEnded(key=key):
                return [EndResponse(key)]
            case RequestFailed(key=key, code=code):
                return [EndResponse(key, ResponseOutcome.FAILED, code)]
            case _:
                return []
