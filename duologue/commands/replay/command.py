"""``duologue replay FILE``: say what happened in a recorded call, do it again, and draw it.

Reads both kinds of flight recording: whole calls (``telemetry.record``), and the last seconds of
a session that crashed, which hold less. This module must not know what a call consists of.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from duologue.commands.picture.png import write_png
from duologue.commands.picture.svg import write_svg
from duologue.commands.replay.drawing import draw
from duologue.commands.replay.page import write_page
from duologue.commands.replay.ring import draw_ring
from duologue.commands.replay.story import Story, story_of
from duologue.commands.replay.table import (
    ANSWER_COLUMNS,
    aligned,
    answer_rows,
    fault_lines,
    interruption_lines,
    rerun_lines,
    ring_lines,
    summary,
)
from duologue.config import add_options, load_from_args
from duologue.core.errors import CodecError, ConfigError
from duologue.duplex_plugins.contract import DuplexPlugin
from duologue.duplex_plugins.registry import make_plugin
from duologue.sessions.recording import recording as call_format
from duologue.sessions.recording.recording import Recording, decode_recording, version_of
from duologue.sessions.recording.rerun import rerun
from duologue.settings import Settings
from duologue.telemetry import decode_flight
from duologue.telemetry import flight as ring_format
from duologue.telemetry.flight import SUFFIX

FORMATS = (".svg", ".html", ".png")


def register(subparsers: Any) -> None:
    """Add ``replay`` to the commands."""
    parser = subparsers.add_parser(
        "replay",
        help="show what happened in a recorded call, and draw it",
        description=__doc__,
        epilog="The call is done again with the model's policy as these settings have it.",
    )
    parser.add_argument("file", type=Path, metavar="FILE", help=f"a recording, *{SUFFIX}")
    parser.add_argument(
        "--out",
        type=Path,
        action="append",
        metavar="PICTURE",
        help="where the picture goes, by its ending .svg, .html or .png; may be given several "
        "times (default: beside the recording, as .html)",
    )
    parser.add_argument(
        "--no-rerun", action="store_true", help="do not do the call again, only show it"
    )
    add_options(parser, Settings)


def run(args: argparse.Namespace) -> int:
    """Show the call; returns 1 where it came out differently when it was done again.

    Raises:
        ConfigError: There is no such file, or a picture of that kind cannot be made.
        CodecError: The file is no recording that this version can read.
    """
    path: Path = args.file
    outs: list[Path] = args.out or [path.with_name(path.name.removesuffix(SUFFIX) + ".html")]
    for out in outs:
        if out.suffix not in FORMATS:
            raise ConfigError(f"{out}: a picture ends in {', '.join(FORMATS)}")
    try:
        data = path.read_bytes()
    except OSError as exc:
        raise ConfigError(f"{path} cannot be read: {exc.strerror}") from exc
    match version_of(data):
        case ring_format.VERSION:
            return _show_ring(data, outs)
        case call_format.VERSION:
            pass
        case other:
            raise CodecError(
                f"{path} has version {other}; this Duologue reads {ring_format.VERSION} (the last "
                f"seconds of a call) and {call_format.VERSION} (a whole one)"
            )
    recording = decode_recording(data)
    story = story_of(recording)
    lines = _lines(recording, story)
    different = False
    if not args.no_rerun:
        plugin = _plugin(recording, load_from_args(Settings, args, os.environ).settings)
        if plugin is None:
            lines.append(
                f"not done again: these settings serve no model '{recording.header.served}'; "
                "give those of the server with --config"
            )
        else:
            again = rerun(recording, plugin)
            different = bool(again.different)
            lines += rerun_lines(again, content=story.content)
    _say(summary(story))
    rows = answer_rows(story)
    if rows:
        _say(*aligned(ANSWER_COLUMNS, rows))
    _say(*lines)
    sheet = draw(story)
    _write(
        outs,
        svg=lambda: write_svg(sheet),
        html=lambda: write_page(
            sheet.title, write_svg(sheet), ANSWER_COLUMNS, rows, [summary(story), *lines]
        ),
        png=lambda out: write_png(sheet, out),
    )
    return int(different)


def _lines(recording: Recording, story: Story) -> list[str]:
    lines = interruption_lines(story) + fault_lines(story)
    if recording.cut_off:
        lines.append("the recording breaks off in the middle of a line")
    return lines


def _show_ring(data: bytes, outs: list[Path]) -> int:
    flight = decode_flight(data)
    lines = ring_lines(flight)
    _say(*lines)
    sheet = draw_ring(flight)
    _write(
        outs,
        svg=lambda: write_svg(sheet),
        html=lambda: write_page(sheet.title, write_svg(sheet), (), (), lines),
        png=lambda out: write_png(sheet, out),
    )
    return 0


def _plugin(recording: Recording, settings: Settings) -> DuplexPlugin | None:
    for model in settings.models:
        if model.name == recording.header.served:
            return make_plugin(model.plugin, model.options)
    return None


def _write(
    outs: list[Path],
    *,
    svg: Callable[[], str],
    html: Callable[[], str],
    png: Callable[[Path], None],
) -> None:
    for out in outs:
        try:
            if out.suffix == ".png":
                png(out)
            else:
                out.write_text(svg() if out.suffix == ".svg" else html(), encoding="utf-8")
        except OSError as exc:
            raise ConfigError(f"{out} cannot be written: {exc.strerror}") from exc
        _say(f"drawn: {out}")


def _say(*lines: str) -> None:
    for line in lines:
        sys.stdout.write(line + "\n")
