"""The transcript of a call: what both sides said, and of the answers what was heard.

This module must not know events or audio; it is told.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum

MAX_LINES = 500
"""The oldest lines of a long call are forgotten."""


class Side(Enum):
    """Who speaks."""

    CALLER = "caller"
    ASSISTANT = "assistant"


class LineState(Enum):
    """How far a line has come."""

    OPEN = "open"
    """It may still grow, or is still being heard."""

    DONE = "done"
    CUT = "cut"
    """Interrupted: what was not heard will never be."""

    FAILED = "failed"
    """There is no text: it could not be transcribed, or the answer failed."""


@dataclass(frozen=True, slots=True)
class Line:
    """One item of the conversation.

    Args:
        heard: Characters of the text that were heard; all of them in a caller's line.
        exact: The server has confirmed ``heard``; before that it is an estimate.
    """

    item_id: str
    side: Side
    text: str = ""
    heard: int = 0
    state: LineState = LineState.OPEN
    exact: bool = False

    @property
    def heard_text(self) -> str:
        """The part that was heard."""
        return self.text[: self.heard]

    @property
    def unheard_text(self) -> str:
        """The part that was not heard, or not yet."""
        return self.text[self.heard :]

    def __str__(self) -> str:
        unheard = self.unheard_text.strip()
        if self.state is LineState.CUT and unheard:
            return f"{self.side.value}: {self.heard_text}[{unheard}]"
        return f"{self.side.value}: {self.text}"


class Transcript:
    """The lines of one call, oldest first. Changed by the call alone."""

    def __init__(self, max_lines: int = MAX_LINES) -> None:
        self.version = 0
        """Grows with every change, so that a view knows when to draw."""

        self._max_lines = max_lines
        self._lines: OrderedDict[str, Line] = OrderedDict()

    def __iter__(self) -> Iterator[Line]:
        return iter(self._lines.values())

    def __len__(self) -> int:
        return len(self._lines)

    def __str__(self) -> str:
        return "\n".join(str(line) for line in self if line.text)

    def get(self, item_id: str) -> Line | None:
        """Return the line of an item."""
        return self._lines.get(item_id)

    def open(self, item_id: str, side: Side) -> None:
        """Begin a line; one that is there stays as it is."""
        if item_id not in self._lines:
            self._set(Line(item_id, side))
            while len(self._lines) > self._max_lines:
                self._lines.popitem(last=False)

    def add(self, item_id: str, delta: str) -> None:
        """Add text to a line; a caller's words count as heard."""
        line = self._lines.get(item_id)
        if line is not None and delta:
            self._replace_text(line, line.text + delta)

    def set_text(self, item_id: str, text: str) -> None:
        """Replace the text of a line: the final word on it."""
        line = self._lines.get(item_id)
        if line is not None:
            self._replace_text(line, text)

    def set_heard(self, item_id: str, heard: int) -> None:
        """Note how many characters of an answer were heard."""
        line = self._lines.get(item_id)
        if line is not None and not line.exact and line.heard != heard:
            self._set(replace(line, heard=min(heard, len(line.text))))

    def confirm_heard(self, item_id: str, heard_text: str) -> None:
        """Note what the server says was heard; nothing changes where it is no part of the text."""
        line = self._lines.get(item_id)
        if line is not None and line.text.startswith(heard_text):
            self._set(replace(line, heard=len(heard_text), exact=True))

    def end(self, item_id: str, state: LineState) -> None:
        """Finish a line; one that was cut stays cut."""
        line = self._lines.get(item_id)
        if line is None or line.state is not LineState.OPEN:
            return
        heard = len(line.text) if state is LineState.DONE else line.heard
        self._set(replace(line, state=state, heard=heard))

    def remove(self, item_id: str) -> None:
        """Forget a line."""
        if self._lines.pop(item_id, None) is not None:
            self.version += 1

    def _replace_text(self, line: Line, text: str) -> None:
        whole = line.side is Side.CALLER or line.state is LineState.DONE
        self._set(
            replace(line, text=text, heard=len(text) if whole else min(line.heard, len(text)))
        )

    def _set(self, line: Line) -> None:
        self._lines[line.item_id] = line
        self.version += 1
