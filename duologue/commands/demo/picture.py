"""The picture of a call: both lanes as waveforms, with what was said, heard, and cut.

This module must not know how a call is held; it draws a record.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from duologue.clients.playback import RATE_HZ
from duologue.clients.timing import TurnTiming
from duologue.commands.demo.checks import INTERRUPTED_TURN
from duologue.commands.demo.record import AnswerRecord, CallRecord, TurnRecord
from duologue.commands.picture.palette import (
    CALLER,
    CUT,
    DUOLOGUE,
    FAINT,
    INK,
    PAPER,
    STEP_S,
    WAIT,
    WAIT_INK,
    Floats,
    envelope,
)
from duologue.commands.picture.png import HATCH, load_matplotlib

MOMENTS: tuple[tuple[str, str, Callable[[TurnTiming], float | None]], ...] = (
    ("end of turn", "#5c6bc0", lambda timing: timing.end_of_turn_at),
    ("question transcribed", "#2e9e6b", lambda timing: timing.transcribed_at),
    ("first words of the answer", "#c77d1a", lambda timing: timing.first_text_at),
)
"""What is marked inside each wait, and how."""

LANE_HEIGHT = 0.8
CALLER_Y, DUOLOGUE_Y = 1.0, -1.0
_WIDTH_IN, _HEIGHT_IN, _DPI = 15.0, 6.4, 140
_CHARACTERS_PER_IN = 11.5


def draw_call(record: CallRecord, path: Path) -> None:
    """Draw a call to a PNG file."""
    pyplot = load_matplotlib()
    figure, axes = pyplot.subplots(figsize=(_WIDTH_IN, _HEIGHT_IN), facecolor=PAPER)
    try:
        sheet = _Sheet(axes, record)
        sheet.draw()
        figure.subplots_adjust(left=0.065, right=0.985, top=0.9, bottom=0.085)
        figure.savefig(path, dpi=_DPI, facecolor=PAPER)
    finally:
        pyplot.close(figure)


class _Sheet:
    """One picture while it is drawn."""

    def __init__(self, axes: Any, record: CallRecord) -> None:
        self._axes = axes
        self._record = record
        self._end = max(record.length_s, 1.0)
        self._below_cut = -2.1
        # Both lanes are drawn to one scale: the louder one fills its band.
        self._said = envelope(bytes(record.said), RATE_HZ)
        self._played = envelope(bytes(record.played), RATE_HZ)
        self._scale = LANE_HEIGHT / max(self._peak(), 1e-3)

    def draw(self) -> None:
        self._frame()
        self._lane(self._said, CALLER_Y, CALLER)
        self._lane(self._played, DUOLOGUE_Y, DUOLOGUE)
        for number, turn in enumerate(self._record.turns):
            self._question(turn, self._room_after_question(number))
            self._wait(turn)
            if turn.answer is not None:
                self._answer(turn.answer, self._room_after(number))
        self._interruption()

    def _peak(self) -> float:
        return float(max(self._said.max(initial=0.0), self._played.max(initial=0.0)))

    def _frame(self) -> None:
        axes = self._axes
        axes.set_facecolor(PAPER)
        axes.set_xlim(0, self._end)
        axes.set_ylim(-3.35, 2.75)
        axes.set_yticks([])
        for side in ("left", "right", "top"):
            axes.spines[side].set_visible(False)
        axes.spines["bottom"].set_color(FAINT)
        axes.tick_params(axis="x", colors=FAINT, labelsize=9)
        axes.set_xlabel("seconds", color=FAINT, fontsize=9)
        for y in (CALLER_Y, DUOLOGUE_Y):
            axes.axhline(y, color=FAINT, linewidth=0.5, alpha=0.6, zorder=1)
        for y, name, colour in ((CALLER_Y, "caller", CALLER), (DUOLOGUE_Y, "duologue", DUOLOGUE)):
            axes.text(
                -0.008,
                y,
                name,
                transform=axes.get_yaxis_transform(),
                ha="right",
                va="center",
                color=colour,
                fontsize=11,
                fontweight="bold",
            )
        axes.set_title(
            f"A call with {self._record.model or 'Duologue'}",
            loc="left",
            color=INK,
            fontsize=14,
            fontweight="bold",
            pad=14,
        )
        handles = [
            axes.plot([], [], "o", markersize=6, color=colour, label=name)[0]
            for name, colour, _ in MOMENTS
        ]
        ghost = axes.fill_between(
            [], [], [], facecolor="none", edgecolor=FAINT, hatch=HATCH, linewidth=0.0
        )
        ghost.set_label("arrived, never heard")
        handles.append(ghost)
        axes.legend(
            handles=handles,
            loc="lower right",
            bbox_to_anchor=(1.0, 1.0),
            ncols=len(handles),
            frameon=False,
            fontsize=9,
            labelcolor=FAINT,
            handletextpad=0.4,
            columnspacing=1.2,
        )

    def _lane(self, levels: Floats, y: float, colour: str, **style: Any) -> None:
        times = np.arange(len(levels)) * STEP_S
        height = levels * self._scale
        self._axes.fill_between(
            times, y - height, y + height, color=colour, linewidth=0, zorder=3, **style
        )

    def _question(self, turn: TurnRecord, room_s: float) -> None:
        start, end = turn.speech_from, turn.speech_until
        self._bracket(start, end, 2.0, CALLER)
        width = max(room_s, 2.2)
        self._words(
            start, 2.1, turn.transcript or turn.question.text, width, colour=CALLER, va="bottom"
        )

    def _wait(self, turn: TurnRecord) -> None:
        """The gap between the question's end and the first sound of the answer."""
        record = self._record
        audible = record.time_of(turn.timing.audible_at) if turn.timing else None
        if audible is None:
            return
        start = turn.speech_until
        self._band(start, audible, 1.75, WAIT, 0.12)
        self._axes.annotate(
            "",
            xy=(audible, 0.0),
            xytext=(start, 0.0),
            arrowprops={
                "arrowstyle": "<->",
                "color": WAIT,
                "linewidth": 1.4,
                "shrinkA": 0,
                "shrinkB": 0,
            },
            zorder=5,
        )
        self._axes.text(
            (start + audible) / 2,
            0.1,
            f"{audible - start:.2f} s",
            ha="center",
            va="bottom",
            color=WAIT_INK,
            fontsize=10.5,
            fontweight="bold",
            zorder=6,
        )
        for number, (_, colour, moment) in enumerate(MOMENTS):
            at = record.time_of(moment(turn.timing)) if turn.timing else None
            if at is not None:
                # Two moments that nearly coincide are seen as a ring around a dot.
                size = 10 - 2 * number
                self._axes.plot([at], [0.0], "o", markersize=size, color=colour, zorder=6, mew=0)

    def _answer(self, answer: AnswerRecord, room_s: float) -> None:
        span = self._record.span_of(answer.item_id)
        if span is None:
            return
        start, end = span
        self._bracket(start, end, -2.0, DUOLOGUE)
        is_cut = bool(answer.truncated_ms)
        heard = answer.history if is_cut else answer.transcript
        width = max(room_s, 2.2)
        bottom = self._words(start, -2.1, heard, width, colour=DUOLOGUE, va="top")
        if not is_cut:
            return
        self._ghost(answer, end)
        unheard = answer.transcript[len(answer.history) :].strip()
        if unheard:
            bottom = self._words(start, bottom, unheard, width, colour=FAINT, va="top", struck=True)
        self._below_cut = bottom - 0.04

    def _ghost(self, answer: AnswerRecord, end: float) -> None:
        """Speech that had arrived and was never played."""
        heard_bytes = 2 * self._record.played_samples(answer.item_id)
        levels = envelope(answer.arrived[heard_bytes:], RATE_HZ)
        times = end + np.arange(len(levels)) * STEP_S
        height = levels * self._scale
        self._axes.fill_between(
            times,
            DUOLOGUE_Y - height,
            DUOLOGUE_Y + height,
            facecolor="none",
            edgecolor=FAINT,
            hatch=HATCH,
            linewidth=0.0,
            alpha=0.75,
            zorder=2,
        )

    def _interruption(self) -> None:
        record = self._record
        if len(record.turns) <= INTERRUPTED_TURN + 1:
            return
        cut, by = record.turns[INTERRUPTED_TURN].answer, record.turns[INTERRUPTED_TURN + 1]
        span = None if cut is None else record.span_of(cut.item_id)
        confirmed = record.time_of(by.timing.confirmed_at if by.timing else None)
        if cut is None or span is None or confirmed is None or not cut.truncated_ms:
            return
        axes = self._axes
        self._band(by.speech_from, confirmed, 1.95, CUT, 0.1)
        axes.plot([span[1], span[1]], [-1.95, 1.95], color=CUT, linewidth=1.6, zorder=7)
        axes.plot(
            [span[1]],
            [DUOLOGUE_Y],
            marker="x",
            markersize=9,
            markeredgewidth=2.4,
            color=CUT,
            zorder=8,
        )
        axes.text(
            span[0],
            self._below_cut,
            f"cut after {record.played_ms(cut.item_id) / 1000:.1f} s, silent "
            f"{max(0.0, span[1] - confirmed) * 1000:.0f} ms after it was certain",
            color=CUT,
            fontsize=9,
            va="top",
            zorder=8,
        )

    def _room_after_question(self, number: int) -> float:
        """The same for a question: up to the next one."""
        turns = self._record.turns
        following = turns[number + 1].speech_from if number + 1 < len(turns) else self._end
        return following - turns[number].speech_from - 0.3

    def _room_after(self, number: int) -> float:
        """How wide the words of an answer may run: up to the next answer."""
        turns = self._record.turns
        answer = turns[number].answer
        span = None if answer is None else self._record.span_of(answer.item_id)
        if span is None:
            return 0.0
        for turn in turns[number + 1 :]:
            following = turn.answer and self._record.span_of(turn.answer.item_id)
            if following:
                return following[0] - span[0] - 0.3
        return self._end - span[0]

    def _band(self, start: float, end: float, height: float, colour: str, alpha: float) -> None:
        self._axes.fill_between(
            [start, end], -height, height, color=colour, alpha=alpha, linewidth=0, zorder=0
        )

    def _bracket(self, start: float, end: float, y: float, colour: str) -> None:
        self._axes.plot(
            [start, end], [y, y], color=colour, linewidth=2.4, solid_capstyle="round", zorder=4
        )

    def _words(
        self,
        x: float,
        y: float,
        text: str,
        width_s: float,
        *,
        colour: str,
        va: str,
        struck: bool = False,
    ) -> float:
        """Write text into a width; returns the y of the next free line."""
        inches = width_s / self._end * _WIDTH_IN * 0.92
        lines = textwrap.wrap(text, max(12, int(inches * _CHARACTERS_PER_IN))) or [""]
        if struck:
            lines = ["".join(f"{character}\u0336" for character in line) for line in lines]
        self._axes.text(
            x,
            y,
            "\n".join(lines),
            color=colour,
            fontsize=10.5,
            va=va,
            ha="left",
            zorder=6,
            linespacing=1.3,
            clip_on=False,
        )
        return y - 0.215 * len(lines) - 0.02
