"""A recorded call as short tables: answers with their latencies, interruptions, what went wrong.

This module must not know how a recording is read or drawn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from duologue.commands.replay.story import Answer, Story
from duologue.sessions.recording.rerun import Rerun
from duologue.telemetry import Direction, Flight

ANSWER_COLUMNS = (
    "answer at",
    "status",
    "wait",
    "end of turn",
    "transcribed",
    "first words",
    "first audio",
    "made",
    "sent",
    "heard",
)


def summary(story: Story) -> str:
    """One line on the whole call."""
    content = "with content" if story.content else "lengths only"
    return (
        f"{story.session_id}: {story.length_s:.1f} s with {story.model}, {content}; "
        f"{_count(len(story.turns), 'turn')}, {_count(len(story.answers), 'answer')}, "
        f"{_count(len(story.interruptions()), 'interruption')}, "
        f"{_count(len(story.faults), 'fault')}; ended: {story.ended or 'not in the recording'}"
    )


def answer_rows(story: Story) -> list[tuple[str, ...]]:
    """A row for each answer, in the order of ``ANSWER_COLUMNS``; latencies are in seconds."""
    return [_row(answer) for answer in story.answers]


def interruption_lines(story: Story) -> list[str]:
    """What each interruption did."""
    lines = []
    for by, answer in story.interruptions():
        who = "by its client" if by is None else f"by the turn at {by.speech_from:.2f} s"
        cut = answer.heard_until
        where = "before a sound of it was heard" if cut is None else f"at {cut:.3f} s"
        unheard = answer.sent_s - answer.heard_s
        lines.append(
            f"the answer at {answer.created_at:.2f} s was cut {where} {who}: "
            f"{answer.heard_s:.3f} s heard, {unheard:.3f} s sent and never heard"
        )
    return lines


def fault_lines(story: Story) -> list[str]:
    """What went wrong, and when."""
    return [f"{fault.at_s:.2f} s: {fault.what}" for fault in story.faults]


def rerun_lines(again: Rerun, *, content: bool) -> list[str]:
    """What doing the call again has shown."""
    if not again.different:
        return [f"done again: {again.steps} steps, none differs"]
    lines = [f"done again: {again.different} of {again.steps} steps differ; the first:"]
    lines += [
        f"  step {d.number} at {d.at_s:.3f} s, {d.call}: recorded {_cut(d.recorded)}; "
        f"now {_cut(d.again)}"
        for d in again.differences[:5]
    ]
    if not content:
        lines.append(
            "  The recording has no content: where words decide (clauses, function calls), or an "
            "echo is recognised, a call that is done again goes another way."
        )
    return lines


def ring_lines(flight: Flight) -> list[str]:
    """The last seconds of a session that crashed: kinds of inputs and of events."""
    entries = flight.entries
    length_s = entries[-1].at_s - entries[0].at_s if entries else 0.0
    lines = [
        f"{flight.session_id}: the last {length_s:.1f} s before {flight.reason}, "
        f"{_count(len(entries), 'entry', 'entries')}"
    ]
    for direction, name in ((Direction.INPUT, "in"), (Direction.EFFECT, "out")):
        counts = Counter(entry.kind for entry in entries if entry.direction is direction)
        if counts:
            lines.append(f"{name}: " + ", ".join(f"{n} {kind}" for kind, n in counts.most_common()))
    lines += [
        f"  {e.at_s:9.3f} s {e.direction.value:>3} {e.kind}"
        + (f" {e.size_bytes} bytes" if e.size_bytes else "")
        for e in entries[-20:]
    ]
    lines.append(
        "A ring holds kinds and sizes only, so it cannot be done again; "
        "telemetry.record keeps whole calls."
    )
    return lines


def aligned(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lay a table out for a terminal."""
    widths = [max(len(cell) for cell in column) for column in zip(columns, *rows, strict=True)]
    return [
        "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (columns, *rows)
    ]


def _row(answer: Answer) -> tuple[str, ...]:
    turn = answer.asked_by
    since = None if turn is None else turn.speech_until

    def after(at_s: float | None) -> str:
        return "-" if at_s is None or since is None else f"{at_s - since:.2f}"

    status = answer.status or "open"
    return (
        f"{answer.created_at:.2f}",
        f"{status} ({answer.reason})" if answer.reason else status,
        after(answer.audible_at),
        after(None if turn is None else turn.stopped_at),
        after(None if turn is None else turn.transcribed_at),
        after(answer.first_text_at),
        after(answer.first_audio_at),
        f"{answer.made_s:.2f}",
        f"{answer.sent_s:.2f}",
        f"{answer.heard_s:.2f}",
    )


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"


def _cut(text: str) -> str:
    return text if len(text) <= 160 else text[:157] + "..."
