"""The picture of a session's last seconds: one row for each kind of input and event.

This module must not know how a recording is read.
"""

from __future__ import annotations

from duologue.commands.picture.palette import CALLER, DUOLOGUE, FAINT, INK
from duologue.commands.picture.sheet import Dot, Label, Line, Sheet
from duologue.telemetry import Direction, Flight

ROW = 22.0
TOP = 64.0


def draw_ring(flight: Flight) -> Sheet:
    """Draw the entries of a ring."""
    entries = flight.entries
    start_s = entries[0].at_s if entries else 0.0
    end_s = entries[-1].at_s if entries else 0.0
    keys = dict.fromkeys((entry.direction, entry.kind) for entry in entries)
    kinds = sorted(keys, key=lambda key: key[0] is Direction.EFFECT)
    sheet = Sheet(
        f"The last seconds of {flight.session_id}, before {flight.reason}",
        max(end_s - start_s, 1.0),
        TOP + ROW * len(kinds) + 40,
    )
    sheet.add(Label(0, 28, sheet.title, INK, 16, bold=True))
    rows = {key: TOP + ROW * number for number, key in enumerate(kinds)}
    for (direction, kind), y in rows.items():
        colour = CALLER if direction is Direction.INPUT else DUOLOGUE
        sheet.add(Line(0, y, sheet.length_s, y, FAINT, 0.4))
        sheet.add(Label(0, y - 5, f"{direction.value} {kind}", colour, 10))
    for entry in entries:
        colour = CALLER if entry.direction is Direction.INPUT else DUOLOGUE
        hint = f"{entry.at_s:.3f} s {entry.kind}, {entry.size_bytes} bytes, epoch {entry.epoch}"
        y = rows[entry.direction, entry.kind]
        sheet.add(Dot(entry.at_s - start_s, y, colour, 3, hint=hint))
    return sheet
