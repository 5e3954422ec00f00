"""The live transcript on a terminal: both sides, unheard words dim, cut words struck through.

Lines that will not change any more scroll up as ordinary text; those that do are drawn again and
again below them. Where the output is no terminal, each line is printed once, when it is final.
This module must not know calls, only their transcripts.
"""

from __future__ import annotations

from types import TracebackType

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from duologue.clients.transcript import Line, LineState, Side, Transcript

NAMES = {Side.CALLER: "you", Side.ASSISTANT: "duologue"}
STYLES = {Side.CALLER: "bold cyan", Side.ASSISTANT: "bold magenta"}
_NAME_WIDTH = max(len(name) for name in NAMES.values())


class TranscriptView:
    """Shows one transcript; use as a context."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._printed: set[str] = set()
        self._version = -1
        self._live: Live | None = None

    def __enter__(self) -> TranscriptView:
        if self._console.is_terminal:
            self._live = Live(console=self._console, auto_refresh=False, transient=True)
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self, transcript: Transcript) -> None:
        """Draw what has changed; cheap where nothing has."""
        if transcript.version == self._version:
            return
        self._version = transcript.version
        lines = [line for line in transcript if line.item_id not in self._printed]
        while lines and is_final(lines[0]):
            self._print(lines.pop(0))
        if self._live is not None:
            drawn = [line_text(line) for line in lines if line.text or _is_waited_for(line)]
            self._live.update(Group(*drawn), refresh=True)

    def finish(self, transcript: Transcript) -> None:
        """Print everything that is left, final or not."""
        if self._live is not None:
            self._live.update(Group(), refresh=True)
        for line in transcript:
            if line.item_id not in self._printed:
                self._print(line)

    def note(self, text: str) -> None:
        """Print a remark between the lines."""
        self._console.print(Text(f"{'':>{_NAME_WIDTH}}  {text}", style="yellow"))

    def _print(self, line: Line) -> None:
        self._printed.add(line.item_id)
        if line.text or line.state is LineState.FAILED:
            self._console.print(line_text(line, marked=not self._console.is_terminal))


def is_final(line: Line) -> bool:
    """Tell whether a line will not change any more."""
    match line.state:
        case LineState.OPEN:
            return False
        case LineState.CUT:
            return line.exact or not line.text
        case _:
            return True


def line_text(line: Line, *, marked: bool = False) -> Text:
    """Return a line in colours.

    Args:
        marked: Say in brackets, too, what was cut: where there are no colours.
    """
    text = Text(f"{NAMES[line.side]:>{_NAME_WIDTH}}  ", style=STYLES[line.side])
    if line.state is LineState.FAILED:
        missing = "(not understood)" if line.side is Side.CALLER else "(the answer failed)"
        return text.append(line.text or missing, style="italic not bold red")
    if not line.text and _is_waited_for(line):
        return text.append("...", style="not bold dim default")
    text.append(line.heard_text, style="not bold default")
    unheard = line.unheard_text
    if unheard and line.state is LineState.CUT:
        style = "not bold dim strike default"
        if marked:
            unheard = f" [not heard: {unheard.strip()}]"
        text.append(unheard, style=style)
    else:
        text.append(unheard, style="not bold dim default")
    return text


def _is_waited_for(line: Line) -> bool:
    return line.state is LineState.OPEN
