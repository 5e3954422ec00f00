"""Writes a worker's reports, and leaves what is large in them beside the link.

This module must not know jobs, nor what moves the payloads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from duologue.engines import framing
from duologue.engines.messages import Apart, FromWorker, Report
from duologue.engines.transport.apart import LEAST_BYTES, Outlook, Put, may_be_large, split
from duologue.engines.transport.port import Data, Handle


class ReportEncoder:
    """Encodes reports.

    Args:
        put: Leaves a payload; ``None`` where there is no room.

    Concurrency:
        Belongs to the thread that works.
    """

    def __init__(self, put: Callable[[Data], Handle | None]) -> None:
        self._put = put
        self._outlook = Outlook()

    def encode(self, report: Report) -> bytes:
        """Return the frames of a report; what is large and finds room lies beside it.

        Raises:
            EngineError: What is too large for a frame finds no room.
        """
        together = b""
        if not self._outlook.is_large:
            together = framing.encode(report)
            if len(together) < LEAST_BYTES or not may_be_large(len(report.messages), len(together)):
                return together
        pieces = list(split(report.messages, cast(Put, self._put)))
        found = any(isinstance(piece, Apart) for piece in pieces)
        self._outlook.saw(found)
        if not found:
            return together or framing.encode(report)
        frames = [_frame(piece) for piece in pieces]
        return b"".join((*frames, framing.encode(Report([], report.step_s))))


def _frame(piece: Apart | list[FromWorker]) -> bytes:
    if isinstance(piece, Apart):
        return framing.encode_apart(piece)
    return framing.encode(Report(piece))
