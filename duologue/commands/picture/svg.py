"""A sheet as SVG. Written by hand, since a picture should need nothing that is not there.

This module must not know what a sheet shows.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from duologue.commands.picture.palette import FAINT, PAPER
from duologue.commands.picture.sheet import Area, Box, Dot, Label, Line, Shape, Sheet

LEFT, RIGHT = 84.0, 24.0
"""Margins, in points."""

POINTS_PER_S = 90.0
LEAST_WIDTH, MOST_WIDTH = 1000.0, 24_000.0


def points_per_s(sheet: Sheet) -> float:
    """The scale: readable for short calls, bounded for long ones."""
    wanted = min(max(sheet.length_s * POINTS_PER_S, LEAST_WIDTH), MOST_WIDTH)
    return wanted / max(sheet.length_s, 0.1)


def x_of(sheet: Sheet, at_s: float) -> float:
    """Where a moment is, in points from the left."""
    return LEFT + at_s * points_per_s(sheet)


def write_svg(sheet: Sheet) -> str:
    """Return a sheet as a document of its own."""
    width = x_of(sheet, sheet.length_s) + RIGHT
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{sheet.height:.0f}" '
        f'viewBox="0 0 {width:.0f} {sheet.height:.0f}" role="img" '
        'font-family="system-ui, sans-serif">',
        f"<title>{escape(sheet.title)}</title>",
        '<defs><pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" '
        f'patternTransform="rotate(45)"><path d="M0 0V6" stroke="{FAINT}" stroke-width="2"/>'
        "</pattern></defs>",
        f'<rect width="100%" height="100%" fill="{PAPER}"/>',
        *(line for shape in sheet.shapes for line in _shape(sheet, shape)),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _shape(sheet: Sheet, shape: Shape) -> Iterator[str]:
    match shape:
        case Box():
            left, right = x_of(sheet, shape.left_s), x_of(sheet, shape.right_s)
            fill = "url(#hatch)" if shape.hatched else shape.colour
            yield _element(
                f'rect{_id(shape.name)} x="{left:.2f}" y="{shape.top:.1f}" '
                f'width="{max(0.0, right - left):.2f}" height="{shape.bottom - shape.top:.1f}" '
                f'fill="{fill}" opacity="{shape.opacity:g}"',
                shape.hint,
            )
        case Area():
            points = " ".join(f"{x_of(sheet, at_s):.1f},{y:.1f}" for at_s, y in shape.points)
            yield f'<polygon points="{points}" fill="{shape.colour}" opacity="{shape.opacity:g}"/>'
        case Line():
            yield _element(
                f'line{_id(shape.name)} x1="{x_of(sheet, shape.from_s):.2f}" '
                f'y1="{shape.from_y:.1f}" x2="{x_of(sheet, shape.to_s):.2f}" y2="{shape.to_y:.1f}" '
                f'stroke="{shape.colour}" stroke-width="{shape.width:g}"',
                shape.hint,
            )
        case Dot():
            yield _element(
                f'circle cx="{x_of(sheet, shape.at_s):.2f}" cy="{shape.y:.1f}" '
                f'r="{shape.radius:g}" fill="{shape.colour}"',
                shape.hint,
            )
        case Label():
            weight = ' font-weight="bold"' if shape.bold else ""
            yield (
                f'<text x="{x_of(sheet, shape.at_s):.1f}" y="{shape.y:.1f}" fill="{shape.colour}" '
                f'font-size="{shape.size:g}" text-anchor="{shape.anchor}"{weight}>'
                f"{escape(shape.text)}</text>"
            )


def _element(start: str, hint: str) -> str:
    if not hint:
        return f"<{start}/>"
    return f"<{start}><title>{escape(hint)}</title></{start.split(None, 1)[0]}>"


def _id(name: str) -> str:
    return f' id="{escape(name)}"' if name else ""
