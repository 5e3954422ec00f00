"""The picture of a recorded call: two lanes, what was heard, where it was cut, what waited.

This module must not know how a recording is read, nor in which format the picture ends.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from duologue.commands.picture.palette import (
    CALLER,
    CUT,
    DUOLOGUE,
    FAINT,
    INK,
    STEP_S,
    WAIT,
    WAIT_INK,
)
from duologue.commands.picture.sheet import Area, Box, Dot, Label, Line, Sheet
from duologue.commands.picture.svg import points_per_s
from duologue.commands.replay.story import Answer, Sound, Story, Turn

TITLE_Y, LEGEND_Y = 26.0, 48.0
CALLER_Y, WAIT_Y, MODEL_Y = 150.0, 225.0, 300.0
LANE_HALF = 44.0
FILL_TOP, FILL_BASE = 395.0, 445.0
AXIS_Y, HEIGHT = 463.0, 505.0
LEGEND_STEP = 115.0
QUIET_LEVEL = 0.3
"""Height of sound of which only the length is known."""

CHARACTERS_PER_S = 12.0
_TICKS_S = (1, 2, 5, 10, 30, 60, 300)
_MOST_TICKS = 60

MOMENTS: tuple[tuple[str, str, Callable[[Answer], float | None]], ...] = (
    ("end of turn", "#5c6bc0", lambda a: a.asked_by.stopped_at if a.asked_by else None),
    ("transcribed", "#2e9e6b", lambda a: a.asked_by.transcribed_at if a.asked_by else None),
    ("first words", "#c77d1a", lambda a: a.first_text_at),
    ("first audio sent", DUOLOGUE, lambda a: a.first_audio_at),
)
"""What is marked between the end of a turn and its answer."""


def draw(story: Story) -> Sheet:
    """Draw a call."""
    sheet = Sheet(f"Call {story.session_id} with {story.model}", max(story.length_s, 1.0), HEIGHT)
    _frame(sheet, story)
    for turn in story.turns:
        _turn(sheet, turn, story)
    _caller(sheet, story)
    for answer in story.answers:
        _answer(sheet, answer, words=story.content)
        _wait(sheet, answer)
    for by, answer in story.interruptions():
        _interruption(sheet, by, answer)
    _waiting(sheet, story)
    for fault in story.faults:
        sheet.add(Dot(fault.at_s, WAIT_Y, CUT, 5, hint=f"{fault.at_s:.2f} s: {fault.what}"))
    return sheet


def _frame(sheet: Sheet, story: Story) -> None:
    sheet.add(Label(0, TITLE_Y, sheet.title, INK, 16, bold=True))
    known = "" if story.content else "; lengths only: no content in the recording"
    heard = "solid: heard, hatched: sent or made and never heard, red: cut" + known
    sheet.add(Label(0, LEGEND_Y, heard, FAINT, 11))
    for number, (name, colour, _) in enumerate(MOMENTS):
        at_s = number * LEGEND_STEP / points_per_s(sheet)
        sheet.add(Label(at_s, LEGEND_Y + 16, f"\u25cf {name}", colour, 11))
    for y, name, colour in ((CALLER_Y, "caller", CALLER), (MODEL_Y, "model", DUOLOGUE)):
        sheet.add(Line(0, y, sheet.length_s, y, FAINT, 0.5))
        sheet.add(Label(0, y + 4, f"{name}  ", colour, 13, "end", bold=True))
    step = next((t for t in _TICKS_S if sheet.length_s / t <= _MOST_TICKS), _TICKS_S[-1])
    sheet.add(Line(0, AXIS_Y, sheet.length_s, AXIS_Y, FAINT, 0.8))
    for tick in range(0, int(sheet.length_s) + 1, step):
        sheet.add(Line(tick, AXIS_Y, tick, AXIS_Y + 5, FAINT, 0.8))
        sheet.add(Label(tick, AXIS_Y + 18, f"{tick} s", FAINT, 10, "middle"))


def _turn(sheet: Sheet, turn: Turn, story: Story) -> None:
    until = story.length_s if turn.speech_until is None else turn.speech_until
    sheet.add(
        Box(
            turn.speech_from,
            until,
            CALLER_Y - LANE_HALF - 6,
            CALLER_Y + LANE_HALF + 6,
            CALLER,
            0.1,
            name=f"turn-{turn.item_id}",
            hint=f"turn {turn.item_id}: {turn.speech_from:.2f} s to {until:.2f} s",
        )
    )
    if turn.transcript and story.content:
        room = max(20, int((until - turn.speech_from + 2) * CHARACTERS_PER_S))
        sheet.add(
            Label(
                turn.speech_from, CALLER_Y - LANE_HALF - 14, _short(turn.transcript, room), CALLER
            )
        )


def _caller(sheet: Sheet, story: Story) -> None:
    """The sound where it is in the recording, else what the detector thought of it."""
    if any(sound.levels is not None for sound in story.caller):
        scale = _scale(story.caller)
        for sound in story.caller:
            _sound(sheet, sound, sound.until_s, CALLER_Y, CALLER, scale)
        return
    for sound in story.caller:
        half = 2.0
        sheet.add(Box(sound.at_s, sound.until_s, CALLER_Y - half, CALLER_Y + half, CALLER, 0.5))
    points = [(at_s, CALLER_Y - level * LANE_HALF) for at_s, level in story.voice]
    if points:
        lower = [(at_s, 2 * CALLER_Y - y) for at_s, y in reversed(points)]
        sheet.add(Area([*points, *lower], CALLER, 0.8))


def _answer(sheet: Sheet, answer: Answer, *, words: bool) -> None:
    scale = _scale(answer.sounds)
    heard_until = answer.heard_until
    left_s = answer.heard_s
    for sound in answer.sounds:
        heard_s = min(left_s, sound.length_s)
        left_s -= heard_s
        split = sound.at_s + heard_s
        if heard_s > 0:
            _sound(sheet, sound, split, MODEL_Y, DUOLOGUE, scale)
        if heard_s < sound.length_s:
            _unheard(sheet, split, sound.until_s, f"unheard-{answer.response_id}")
    # What was made and never sent would have followed.
    unsent_s = answer.made_s - answer.sent_s
    if unsent_s > STEP_S and answer.sounds:
        until = answer.sounds[-1].until_s
        _unheard(sheet, until, until + unsent_s, f"unsent-{answer.response_id}")
    if heard_until is not None and answer.sounds:
        start = answer.sounds[0].at_s
        bottom = MODEL_Y + LANE_HALF + 8
        hint = f"{answer.response_id}: {answer.heard_s:.2f} s heard of {answer.sent_s:.2f} s sent"
        sheet.add(Line(start, bottom, heard_until, bottom, DUOLOGUE, 2.4, hint=hint))
        if answer.transcript and words:
            room = max(20, int((answer.sent_s + 1) * CHARACTERS_PER_S))
            sheet.add(Label(start, bottom + 18, _short(answer.transcript, room), DUOLOGUE))


def _wait(sheet: Sheet, answer: Answer) -> None:
    """From the end of the person's speech to the first sample that was heard."""
    turn, audible = answer.asked_by, answer.audible_at
    if turn is None or turn.speech_until is None or audible is None:
        return
    sheet.add(Box(turn.speech_until, audible, CALLER_Y, MODEL_Y, WAIT, 0.12))
    sheet.add(Line(turn.speech_until, WAIT_Y, audible, WAIT_Y, WAIT, 1.4))
    wait_s = audible - turn.speech_until
    middle = (turn.speech_until + audible) / 2
    sheet.add(Label(middle, WAIT_Y - 8, f"{wait_s:.2f} s", WAIT_INK, 12, "middle", bold=True))
    for name, colour, moment in MOMENTS:
        at_s = moment(answer)
        if at_s is not None:
            since_ms = (at_s - turn.speech_until) * 1000
            sheet.add(Dot(at_s, WAIT_Y, colour, hint=f"{name}: {since_ms:.0f} ms after the speech"))


def _interruption(sheet: Sheet, by: Turn | None, answer: Answer) -> None:
    cut = answer.heard_until
    if cut is None or answer.cut_s is None:
        return
    top = CALLER_Y - LANE_HALF if by is not None else MODEL_Y - LANE_HALF
    said = f"cut after {answer.heard_s:.2f} s"
    if by is not None:
        sheet.add(Box(by.speech_from, by.started_at, top, MODEL_Y + LANE_HALF, CUT, 0.1))
        if cut >= by.started_at:
            said += f", {(cut - by.started_at) * 1000:.0f} ms after it was certain"
    sheet.add(
        Line(
            cut,
            top,
            cut,
            MODEL_Y + LANE_HALF,
            CUT,
            1.8,
            name=f"cut-{answer.response_id}",
            hint=said,
        )
    )
    sheet.add(Label(cut, MODEL_Y + LANE_HALF + 44, said, CUT, 11))


def _waiting(sheet: Sheet, story: Story) -> None:
    """How full the output buffer was, and how far what was sent was ahead of what was heard."""
    ahead_ms = [seconds * 1000 for _, seconds in story.ahead]
    most = max([*ahead_ms, *(ms for _, ms in story.waiting)], default=0)
    sheet.add(Label(0, FILL_BASE - 22, "sent ahead  ", DUOLOGUE, 11, "end"))
    sheet.add(Label(0, FILL_BASE - 8, "waiting  ", INK, 11, "end"))
    if not most:
        return
    scale = (FILL_BASE - FILL_TOP) / most
    line = [(at_s, FILL_BASE - seconds * 1000 * scale) for at_s, seconds in story.ahead]
    if line:
        first, last = line[0][0], line[-1][0]
        sheet.add(Area([(first, FILL_BASE), *line, (last, FILL_BASE)], DUOLOGUE, 0.25))
    points: list[tuple[float, float]] = [(0.0, FILL_BASE)]
    level = FILL_BASE
    for at_s, ms in story.waiting:
        points.append((at_s, level))
        level = FILL_BASE - ms * scale
        points.append((at_s, level))
    points += [(story.length_s, level), (story.length_s, FILL_BASE)]
    sheet.add(Area(points, INK, 0.5))
    sheet.add(Label(0, FILL_TOP + 4, f"{most / 1000:.1f} s  ", FAINT, 10, "end"))


def _sound(sheet: Sheet, sound: Sound, until: float, y: float, colour: str, scale: float) -> None:
    """A piece of a lane, up to a moment."""
    if sound.levels is None or not len(sound.levels):
        half = QUIET_LEVEL * LANE_HALF
        sheet.add(Box(sound.at_s, until, y - half, y + half, colour, 0.8))
        return
    step_s = sound.length_s / len(sound.levels)
    upper = [
        (sound.at_s + n * step_s, y - max(0.4, float(level) * scale))
        for n, level in enumerate(sound.levels)
        if sound.at_s + n * step_s <= until
    ]
    upper.append((until, upper[-1][1] if upper else y))
    lower = [(at_s, 2 * y - top) for at_s, top in reversed(upper)]
    sheet.add(Area([*upper, *lower], colour))


def _unheard(sheet: Sheet, start: float, until: float, name: str) -> None:
    half = 0.6 * LANE_HALF
    shown = min(until, sheet.length_s)
    hint = f"never heard: {until - start:.2f} s"
    sheet.add(
        Box(start, shown, MODEL_Y - half, MODEL_Y + half, FAINT, 0.8, True, name=name, hint=hint)
    )


def _scale(sounds: Sequence[Sound]) -> float:
    """Points for full loudness: the loudest of a lane fills it."""
    peaks = [float(s.levels.max()) for s in sounds if s.levels is not None and len(s.levels)]
    return LANE_HALF / max(*peaks, 0.02, 0.02)


def _short(text: str, characters: int) -> str:
    return text if len(text) <= characters else text[: characters - 1].rstrip() + "…"
