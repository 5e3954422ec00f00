"""What an answer becomes on the wire: one object, or chunks.

This module must not know how an answer comes about.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import msgspec

from duologue.codecs.containers import OutputFormat
from duologue.codecs.containers.wav import write_sizes
from duologue.engines.payloads import TokenUsage
from duologue.gateway.chat.checks import Wanted
from duologue.gateway.chat.turn import Ending
from duologue.gateway.speech.encoding import SpeechFile
from duologue.protocol.chat_completion import (
    AudioChunkDelta,
    CalledFunction,
    ChatCompletion,
    ChatCompletionChunk,
    ChunkChoice,
    ChunkDelta,
    CompletionAudio,
    CompletionChoice,
    CompletionDetails,
    CompletionMessage,
    CompletionToolCall,
    CompletionUsage,
    FunctionDelta,
    PromptDetails,
    ToolCallChunk,
)


@dataclass(frozen=True, slots=True)
class Label:
    """What names an answer.

    Args:
        created: Unix seconds, as ``expires_at``, until which ``audio_id`` stands for the answer.
    """

    id: str
    created: int
    model: str
    audio_id: str = ""
    expires_at: int = 0


class Events(Protocol):
    """Sends chunks."""

    async def send(self, event: msgspec.Struct) -> None:
        """Send one."""
        ...


class WholeAnswer:
    """Collects an answer."""

    def __init__(self, label: Label, wanted: Wanted) -> None:
        self.said = ""
        self._label = label
        self._wanted = wanted
        self._calls: list[tuple[str, str, list[str]]] = []
        self._file: SpeechFile | None = None
        self._speech = bytearray()

    async def text(self, text: str) -> None:
        """Add text."""
        self.said += text

    async def call(self, index: int, call_id: str, name: str, arguments: str) -> None:
        """Add a piece of a function call."""
        if index == len(self._calls):
            self._calls.append((call_id, name, []))
        self._calls[index][2].append(arguments)

    async def speech(self, pcm: bytes) -> None:
        """Add speech."""
        if self._file is None:
            self._file = await SpeechFile.begin(_file_format(self._wanted))
        self._speech += await self._file.add(pcm)

    def close(self) -> None:
        """Let go of what encodes the speech; nothing more is added."""
        file, self._file = self._file, None
        if file is not None:
            file.close()

    async def finish(self, ending: Ending) -> ChatCompletion:
        """Return all of it."""
        label = self._label
        message = CompletionMessage(content=self.said)
        if self._calls:
            calls = [
                CompletionToolCall(id=call_id, function=_called(name, arguments))
                for call_id, name, arguments in self._calls
            ]
            message = CompletionMessage(content=self.said or None, tool_calls=calls)
        if self._wanted.audio and not (self._calls and not self.said.strip()):
            audio = CompletionAudio(
                id=label.audio_id,
                data=await self._finished_file(),
                expires_at=label.expires_at,
                transcript=self.said if self._wanted.text else "",
            )
            message = msgspec.structs.replace(message, content=None, audio=audio)
        return ChatCompletion(
            id=label.id,
            created=label.created,
            model=label.model,
            choices=(CompletionChoice(message=message, finish_reason=ending.reason),),
            usage=completion_usage(ending.usage),
        )

    async def _finished_file(self) -> bytes:
        if self._file is None:
            self._file = await SpeechFile.begin(_file_format(self._wanted))
        self._speech += await self._file.end()
        if _file_format(self._wanted) is OutputFormat.WAV:
            write_sizes(self._speech)
        return bytes(self._speech)


class ChunkedAnswer:
    """Sends an answer in chunks.

    Args:
        tells_usage: The last chunk says what was read and written.
    """

    def __init__(self, events: Events, label: Label, wanted: Wanted, *, tells_usage: bool) -> None:
        self.said = ""
        self._events = events
        self._label = label
        self._wanted = wanted
        self._tells_usage = tells_usage
        self._begun = False
        self._speaks = False

    async def text(self, text: str) -> None:
        """Send text, or the transcript of what is being spoken."""
        self.said += text
        if not self._wanted.audio:
            await self._begin("")
            await self._send(ChunkDelta(content=text))
        elif self._wanted.text:
            await self._begin_audio()
            await self._send(ChunkDelta(audio=AudioChunkDelta(transcript=text)))

    async def call(self, index: int, call_id: str, name: str, arguments: str) -> None:
        """Send a piece of a function call."""
        await self._begin(None)
        piece = ToolCallChunk(index=index, function=FunctionDelta(arguments=arguments))
        if name:
            # Some clients take the name from a piece that holds nothing else.
            first = FunctionDelta(name=name, arguments="")
            opening = ToolCallChunk(index=index, id=call_id, type="function", function=first)
            await self._send(ChunkDelta(tool_calls=(opening,)))
        if arguments:
            await self._send(ChunkDelta(tool_calls=(piece,)))

    async def speech(self, pcm: bytes) -> None:
        """Send speech."""
        await self._begin_audio()
        await self._send(ChunkDelta(audio=AudioChunkDelta(data=pcm)))

    async def finish(self, ending: Ending) -> None:
        """Say why it is over, and what it took."""
        await self._begin("")
        if self._speaks:
            until = AudioChunkDelta(expires_at=self._label.expires_at)
            await self._send(ChunkDelta(audio=until))
        await self._send_choice(ChunkChoice(delta=ChunkDelta(), finish_reason=ending.reason))
        if self._tells_usage:
            await self._events.send(self._chunk((), completion_usage(ending.usage)))

    async def _begin(self, content: str | None) -> None:
        if not self._begun:
            self._begun = True
            await self._send(ChunkDelta(role="assistant", content=content))

    async def _begin_audio(self) -> None:
        if not self._speaks:
            self._speaks = True
            named = AudioChunkDelta(id=self._label.audio_id)
            delta = ChunkDelta(audio=named)
            if not self._begun:
                delta = ChunkDelta(role="assistant", audio=named)
            self._begun = True
            await self._send(delta)

    async def _send(self, delta: ChunkDelta) -> None:
        await self._send_choice(ChunkChoice(delta=delta))

    async def _send_choice(self, choice: ChunkChoice) -> None:
        await self._events.send(self._chunk((choice,), None))

    def _chunk(
        self, choices: tuple[ChunkChoice, ...], usage: CompletionUsage | None
    ) -> ChatCompletionChunk:
        label = self._label
        return ChatCompletionChunk(
            id=label.id,
            created=label.created,
            model=label.model,
            choices=choices,
            usage=usage if self._tells_usage else msgspec.UNSET,
        )


def completion_usage(usage: TokenUsage) -> CompletionUsage:
    """Return what was read and written, in the API's words."""
    return CompletionUsage(
        prompt_tokens=usage.input_tokens,
        completion_tokens=usage.output_tokens,
        total_tokens=usage.input_tokens + usage.output_tokens,
        prompt_tokens_details=PromptDetails(
            cached_tokens=usage.cached_tokens, audio_tokens=usage.input_audio_tokens
        ),
        completion_tokens_details=CompletionDetails(audio_tokens=usage.output_audio_tokens),
    )


def _file_format(wanted: Wanted) -> OutputFormat:
    return OutputFormat.PCM if wanted.format == "pcm16" else OutputFormat(wanted.format)


def _called(name: str, arguments: list[str]) -> CalledFunction:
    return CalledFunction(name=name, arguments="".join(arguments) or "{}")
