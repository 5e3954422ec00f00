"""How the log of a worker's process reaches the log of the process that started it.

What libraries print may repeat what people said, so it stands in no log. Lines of our own loggers
do not, and say how far a model is loaded; they are marked on their way through the same pipe.
"""

from __future__ import annotations

from typing import Any, TextIO

import msgspec

MARK = "\x1e"
"""Begins each line of our own: the record separator of ASCII, which nobody prints."""

_OF_THE_LINE = ("event", "level", "timestamp", "worker", "what")


class MarkedLines:
    """A stream for a log of JSON lines, which marks each of them."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, line: str) -> int:
        """Write a whole line."""
        return self._stream.write(MARK + line)

    def flush(self) -> None:
        """Let it go."""
        self._stream.flush()

    def isatty(self) -> bool:
        """Nobody reads it as it is."""
        return False


def read_marked(line: str) -> tuple[str, dict[str, Any]] | None:
    """Return the event of a line of ours and the values that belong to it; else nothing."""
    if not line.startswith(MARK):
        return None
    try:
        entry = msgspec.json.decode(line[len(MARK) :], type=dict[str, Any])
    except msgspec.MsgspecError:
        return None
    values = {key: value for key, value in entry.items() if key not in _OF_THE_LINE}
    return str(entry.get("event", "")), values
