"""What travels into and out of stages that drive robots.

A part of the union of all payloads (see ``payloads``), in a file of its own. This module must not
know how actions are found.
"""

from __future__ import annotations

from duologue.engines.payload_base import PayloadBase


class DecideActions(PayloadBase, frozen=True):
    """Ask what a robot is to do next.

    Args:
        images: One for each camera, in the pipeline's order: uint8 RGB, rows from the top,
            without padding.
        state: float32, little-endian; what the robot knows of its joints.
        steps: Of the flow from noise to actions.
        seed: The same observation and seed give the same actions.
    """

    images: tuple[bytes, ...]
    state: bytes
    prompt: str
    steps: int
    seed: int


class ActionChunk(PayloadBase, frozen=True):
    """The next ``horizon`` actions of ``dim`` numbers each: float32, little-endian, row by row."""

    values: bytes
    horizon: int
    dim: int
