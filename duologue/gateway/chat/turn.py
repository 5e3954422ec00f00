"""One answer, from the language model and, where it is spoken, a voice.

The voice speaks the first clause while the model still writes; some models speak by themselves.
This module must not know who listens, nor how what comes is sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Protocol

from duologue.codecs.resample import StreamResampler
from duologue.core.errors import EngineError, ProtocolError
from duologue.core.ids import IdMaker
from duologue.engines.payloads import (
    AudioChunk,
    ChatRequest,
    SpeechMark,
    TextDelta,
    TokenUsage,
    ToolCallDelta,
)
from duologue.engines.runners.llm.chat_chunk import REQUEST_REFUSED
from duologue.gateway.route_requests import Outputs, RouteRequests
from duologue.gateway.speech.speaking import CREDIT_MS, SPEECH_RATE_HZ, Speaking
from duologue.gateway.speech.voices import Manner
from duologue.protocol.chat_completion import FinishReason
from duologue.protocol.errors import ErrorCode

WRITTEN_CREDIT = 64
"""Pieces of text that may wait to be taken."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How an answer ended."""

    reason: FinishReason
    usage: TokenUsage


class Sink(Protocol):
    """Takes an answer as it comes. A method waits while no more can be taken."""

    async def text(self, text: str) -> None:
        """Take the next piece of text."""
        ...

    async def call(self, index: int, call_id: str, name: str, arguments: str) -> None:
        """Take the next piece of a function call; only the first has its id and its name."""
        ...

    async def speech(self, pcm: bytes) -> None:
        """Take the next speech, s16le mono at ``speech.speaking.SPEECH_RATE_HZ``."""
        ...


class Turn:
    """Answers one request, once.

    Args:
        pipeline: Of the language model.
        manner: How the answer is spoken; ``None``: it is not, or by the model itself.
    """

    def __init__(
        self,
        engine: RouteRequests,
        new_id: IdMaker,
        pipeline: str,
        request: ChatRequest,
        manner: Manner | None,
        sink: Sink,
    ) -> None:
        self._engine = engine
        self._new_id = new_id
        self._pipeline = pipeline
        self._request = request
        self._manner = manner
        self._sink = sink
        self._usage = TokenUsage(0, 0)
        self._numbers: dict[int, int | None] = {}
        """The model's number of a call -> ours; none for a call that was not offered."""
        self._calls = 0
        self._resampler: StreamResampler | None = None
        """To the rate of answers, once a model that speaks has said something."""

    async def run(self) -> Ending:
        """Answer; returns when all was taken.

        Raises:
            EngineError: A model failed.
            ProtocolError: The language model can do nothing with what was asked.
        """
        says_itself = self._request.voice is not None
        credit = CREDIT_MS if says_itself else WRITTEN_CREDIT
        try:
            with ExitStack() as running:
                written = running.enter_context(
                    self._engine.request(self._pipeline, self._request, credit=credit)
                )
                if self._manner is None:
                    await self._write(written, None)
                else:
                    voice = running.enter_context(
                        self._engine.request(
                            self._manner.pipeline, more_input=True, credit=CREDIT_MS
                        )
                    )
                    speaking = Speaking(voice, self._manner)
                    await _together(self._write(written, speaking), self._speak(speaking))
        except EngineError as exc:
            if exc.code == REQUEST_REFUSED:
                raise self._refusal() from exc
            raise
        return Ending(self._reason(), self._usage)

    async def _write(self, written: Outputs, speaking: Speaking | None) -> None:
        async for payload in written:
            match payload:
                case TextDelta(text=text):
                    if speaking is not None:
                        speaking.feed(text)
                    await self._sink.text(text)
                case ToolCallDelta():
                    await self._call(payload)
                case TokenUsage():
                    self._usage = payload
                case AudioChunk(pcm=pcm, rate_hz=rate_hz) if self._request.voice is not None:
                    if self._resampler is None:
                        self._resampler = StreamResampler(rate_hz, SPEECH_RATE_HZ)
                    if pcm := self._resampler.process(pcm):
                        await self._sink.speech(pcm)
                case SpeechMark():
                    pass
                case other:
                    raise EngineError(f"a language model gave {type(other).__name__}")
        if speaking is not None:
            speaking.finish()
        if self._resampler is not None and (tail := self._resampler.flush()):
            await self._sink.speech(tail)

    async def _speak(self, speaking: Speaking) -> None:
        async for piece in speaking.pieces():
            if piece.pcm:
                await self._sink.speech(piece.pcm)

    async def _call(self, piece: ToolCallDelta) -> None:
        if piece.index not in self._numbers:
            if not self._request.tools.allows(piece.name):
                # Small models make functions up; nobody could call them.
                self._numbers[piece.index] = None
                return
            self._numbers[piece.index] = number = self._calls
            self._calls += 1
            call_id = piece.call_id or self._new_id("call")
            await self._sink.call(number, call_id, piece.name, piece.arguments)
            return
        known = self._numbers[piece.index]
        if known is not None and piece.arguments:
            await self._sink.call(known, "", "", piece.arguments)

    def _reason(self) -> FinishReason:
        usage = self._usage
        if usage.cut or usage.output_tokens >= self._request.max_tokens:
            return "length"
        return "tool_calls" if self._calls else "stop"

    def _refusal(self) -> ProtocolError:
        request = self._request
        param = "messages"
        if request.schema:
            param = "response_format.json_schema.schema"
        elif request.tools.functions:
            param = "tools"
        return ProtocolError(
            f"the model can do nothing with {param}; try a simpler form of it",
            code=ErrorCode.INVALID_VALUE,
            param=param,
        )


async def _together(*work: Coroutine[None, None, None]) -> None:
    """Do several things at a time; the first failure ends all."""
    try:
        async with asyncio.TaskGroup() as group:
            for each in work:
                group.create_task(each)
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None
