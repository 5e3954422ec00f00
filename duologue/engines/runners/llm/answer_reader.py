"""From the pieces of a streamed chat completion to the outputs of a stage.

Text first, then function calls, then what they cost. This module must not know how pieces travel.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from duologue.engines.payloads import ChatRequest, TextDelta, TokenUsage, ToolCallDelta
from duologue.engines.runners.llm.chat_chunk import ChatChunk
from duologue.engines.runners.llm.tool_text import ToolTextReader

AnswerOutput = TextDelta | ToolCallDelta | TokenUsage


class AnswerReader:
    """One answer.

    Calls come in fields of their own, where the server knows the model's form of them, or in the
    text, where it does not.
    """

    def __init__(self, request: ChatRequest) -> None:
        self.written: list[str] = []
        """What the model wrote as text, with the form of calls in it."""

        # Where the answer is to be JSON, an object in it is no call.
        reads_calls = not request.schema
        self._text = ToolTextReader(request.tools) if reads_calls else None
        self._open: dict[int, tuple[str, int]] = {}
        self._calls = 0
        self._usage: TokenUsage | None = None
        self._cut = False

    def feed(self, chunk: ChatChunk) -> Iterator[AnswerOutput]:
        """Read a piece."""
        if chunk.text:
            self.written.append(chunk.text)
            if self._text is None:
                yield TextDelta(chunk.text)
            else:
                yield from self._text.feed(chunk.text)
        for piece in chunk.calls():
            yield self._numbered(piece)
        self._cut = self._cut or chunk.cut
        self._usage = chunk.token_usage() or self._usage

    def finish(self) -> Iterator[AnswerOutput]:
        """Say that the answer is over; yields what was held back, then the usage."""
        if self._text is not None:
            yield from self._text.finish()
        if self._usage is not None:
            yield msgspec.structs.replace(self._usage, cut=self._cut)
        elif self._cut:
            yield TokenUsage(0, 0, cut=True)

    def _numbered(self, piece: ToolCallDelta) -> ToolCallDelta:
        """Some servers give every call the same index: another id is another call all the same."""
        call = self._open.get(piece.index)
        if call is None or piece.call_id not in ("", call[0]):
            call = self._open[piece.index] = piece.call_id, self._calls
            self._calls += 1
        return msgspec.structs.replace(piece, index=call[1])
