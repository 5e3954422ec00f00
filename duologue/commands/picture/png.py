"""A sheet as PNG, where matplotlib is installed. The only importer of matplotlib.

This module must not know what a sheet shows.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from duologue.commands.picture.palette import FAINT, PAPER
from duologue.commands.picture.sheet import Area, Box, Dot, Label, Line, Shape, Sheet
from duologue.commands.picture.svg import RIGHT, x_of
from duologue.core.errors import ConfigError
from duologue.core.installation import install_command

_DPI = 100
_POINTS_PER_IN = 80.0
_MOST_WIDTH = 16_000.0
"""Of a picture, in points: renderers take 65,536 pixels."""

_ANCHORS = {"start": "left", "middle": "center", "end": "right"}
HATCH = "//////"


def load_matplotlib() -> Any:
    """Import matplotlib, without a screen.

    Raises:
        ConfigError: It is not installed.
    """
    try:
        import matplotlib
    except ImportError as exc:
        raise ConfigError(
            f"the picture of the call needs matplotlib: {install_command('duologue[local]')}"
        ) from exc
    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot


def write_png(sheet: Sheet, path: Path) -> None:
    """Draw a sheet to a file.

    Raises:
        ConfigError: matplotlib is not installed.
    """
    pyplot = load_matplotlib()
    width = x_of(sheet, sheet.length_s) + RIGHT
    shown = min(width, _MOST_WIDTH)
    figure = pyplot.figure(
        figsize=(shown / _POINTS_PER_IN, sheet.height / _POINTS_PER_IN), facecolor=PAPER
    )
    try:
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_axis_off()
        axes.set_xlim(0, width)
        axes.set_ylim(sheet.height, 0)
        for order, shape in enumerate(sheet.shapes):
            _draw(axes, sheet, shape, order)
        figure.savefig(path, dpi=_DPI, facecolor=PAPER)
    finally:
        pyplot.close(figure)


def _draw(axes: Any, sheet: Sheet, shape: Shape, order: int) -> None:
    match shape:
        case Box():
            style: dict[str, Any] = {"color": shape.colour, "linewidth": 0}
            if shape.hatched:
                style = {
                    "facecolor": "none",
                    "edgecolor": FAINT,
                    "hatch": HATCH,
                    "linewidth": 0,
                }
            axes.fill_between(
                [x_of(sheet, shape.left_s), x_of(sheet, shape.right_s)],
                shape.top,
                shape.bottom,
                alpha=shape.opacity,
                zorder=order,
                **style,
            )
        case Area():
            xs = [x_of(sheet, at_s) for at_s, _ in shape.points]
            ys = [y for _, y in shape.points]
            axes.fill(xs, ys, color=shape.colour, alpha=shape.opacity, linewidth=0, zorder=order)
        case Line():
            axes.plot(
                [x_of(sheet, shape.from_s), x_of(sheet, shape.to_s)],
                [shape.from_y, shape.to_y],
                color=shape.colour,
                linewidth=shape.width,
                zorder=order,
            )
        case Dot():
            axes.plot(
                [x_of(sheet, shape.at_s)],
                [shape.y],
                "o",
                color=shape.colour,
                markersize=shape.radius * 1.6,
                zorder=order,
            )
        case Label():
            axes.text(
                x_of(sheet, shape.at_s),
                shape.y,
                shape.text,
                color=shape.colour,
                fontsize=shape.size * 0.85,
                ha=_ANCHORS[shape.anchor],
                va="baseline",
                fontweight="bold" if shape.bold else "normal",
                zorder=order,
            )
