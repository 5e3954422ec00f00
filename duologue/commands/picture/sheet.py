"""What is on a picture of a call: shapes whose x is seconds and whose y is points from the top.

This module must not know what they mean, nor in which format they end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle.

    Args:
        name: Its id on the sheet, for who looks for it; empty: none.
        hint: What is shown of it under a pointer.
    """

    left_s: float
    right_s: float
    top: float
    bottom: float
    colour: str
    opacity: float = 1.0
    hatched: bool = False
    name: str = ""
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Area:
    """A filled outline."""

    points: Sequence[tuple[float, float]]
    colour: str
    opacity: float = 1.0


@dataclass(frozen=True, slots=True)
class Line:
    """A straight line."""

    from_s: float
    from_y: float
    to_s: float
    to_y: float
    colour: str
    width: float = 1.0
    name: str = ""
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Dot:
    """A moment."""

    at_s: float
    y: float
    colour: str
    radius: float = 4.0
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Label:
    """One line of text."""

    at_s: float
    y: float
    text: str
    colour: str
    size: float = 12.0
    anchor: Literal["start", "middle", "end"] = "start"
    bold: bool = False


Shape = Box | Area | Line | Dot | Label


@dataclass(slots=True)
class Sheet:
    """A picture, drawn in the order of its shapes.

    Args:
        length_s: From the left edge to the right one.
        height: In points.
    """

    title: str
    length_s: float
    height: float
    shapes: list[Shape] = field(default_factory=list)

    def add(self, *shapes: Shape) -> None:
        """Draw shapes over what is there."""
        self.shapes.extend(shapes)
