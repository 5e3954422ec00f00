"""What happened, as tables for the terminal: moments of each turn, and the verdicts.

This module must not know how a call is held or judged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from duologue.clients.timing import TurnTiming
from duologue.commands.demo.checks import INTERRUPTED_TURN, Check
from duologue.commands.demo.record import CallRecord, TurnRecord

STEPS: tuple[tuple[str, Callable[[TurnTiming], float | None]], ...] = (
    ("end of turn decided", lambda timing: timing.end_of_turn_at),
    ("question transcribed", lambda timing: timing.transcribed_at),
    ("first words of the answer", lambda timing: timing.first_text_at),
    ("first audio arrives", lambda timing: timing.first_audio_at),
    ("first audible sample", lambda timing: timing.audible_at),
)
"""What can be seen from the caller's side of the wire, in the order in which it should happen."""


def wait_s(record: CallRecord, turn: TurnRecord, moment: float | None) -> float | None:
    """Return the seconds from the true end of a question's speech to a moment."""
    at = record.time_of(moment)
    return None if at is None else at - turn.speech_until


def latency_table(record: CallRecord) -> Table:
    """Return the moments of each turn, in seconds after the caller's last sound."""
    table = Table(
        title="seconds after the end of each question's speech",
        box=box.SIMPLE_HEAD,
        title_style="bold",
    )
    table.add_column("", style="dim", no_wrap=True)
    for turn in record.turns:
        table.add_column(turn.question.id, justify="right")
    for name, moment in STEPS:
        cells = []
        for turn in record.turns:
            seconds = wait_s(record, turn, moment(turn.timing)) if turn.timing else None
            cells.append("-" if seconds is None else f"{seconds:.2f}")
        is_last = name == STEPS[-1][0]
        table.add_row(name, *cells, style="bold" if is_last else "")
    return table


def interruption_lines(record: CallRecord) -> list[str]:
    """Say in plain words what the interruption did; nothing where there was none."""
    if len(record.turns) <= INTERRUPTED_TURN + 1:
        return []
    cut = record.turns[INTERRUPTED_TURN].answer
    by = record.turns[INTERRUPTED_TURN + 1]
    span = None if cut is None else record.span_of(cut.item_id)
    confirmed = record.time_of(None if by.timing is None else by.timing.confirmed_at)
    if cut is None or span is None or confirmed is None or not cut.truncated_ms:
        return []
    unheard = cut.transcript[len(cut.history) :].strip()
    return [
        f"the caller spoke over the answer; {confirmed - by.speech_from:.2f} s later that was "
        f"certain, and {max(0.0, span[1] - confirmed) * 1000:.0f} ms after that the loudspeaker "
        "was silent",
        f"heard {record.played_ms(cut.item_id) / 1000:.2f} s: {cut.history or '(nothing)'}",
        f"cut: {unheard or '(nothing)'}",
    ]


def check_lines(checks: Sequence[Check], *, verbose: bool) -> list[Text]:
    """Return the verdicts, with what was seen where one failed."""
    lines: list[Text] = []
    for check in checks:
        mark = ("ok   ", "green") if check.passed else ("FAIL ", "bold red")
        line = Text(mark[0], style=mark[1]).append(check.what, style="not bold default")
        if verbose or not check.passed:
            line.append(f": {check.saw}", style="not bold dim default")
        lines.append(line)
    return lines
