"""Which tokens of an answer are said aloud: those of its text, not those of function calls.

This module must not know models, or who says them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

from duologue.engines.payloads import TextDelta, Tools
from duologue.engines.runners.llm.tool_text import TextOrCall, ToolTextReader
from duologue.engines.runners.speech.spelling import Spelt


class Saying:
    """One answer.

    Args:
        tools: What may be called. With none, all is said.
    """

    def __init__(self, tools: Tools) -> None:
        self._reader = ToolTextReader(tools)
        self._held: deque[Spelt] = deque()
        self._held_from = 0
        self.chars = 0
        """Of all text that is known to be said."""

    def take(self, spelt: Spelt) -> tuple[Sequence[TextOrCall], Sequence[int]]:
        """Take the next piece; returns text and calls that are known now, and what is said."""
        if spelt.ids or spelt.text:
            self._held.append(spelt)
        return self._known(self._reader.feed(spelt.text) if spelt.text else ())

    def finish(self) -> tuple[Sequence[TextOrCall], Sequence[int]]:
        """Say that the answer is over; returns the rest."""
        return self._known(self._reader.finish())

    def _known(self, found: Iterable[TextOrCall]) -> tuple[Sequence[TextOrCall], Sequence[int]]:
        outputs = list(found)
        # No text follows a call, so what is held from there on is never said.
        self.chars += sum(len(each.text) for each in outputs if isinstance(each, TextDelta))
        ids: list[int] = []
        while self._held and self._held_from + len(self._held[0].text) <= self.chars:
            piece = self._held.popleft()
            self._held_from += len(piece.text)
            ids += piece.ids
        return outputs, ids
