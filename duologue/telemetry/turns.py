"""The moments of one turn, as a trace shows them. This module must not know who traces them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(slots=True)
class TurnTimes:
    """When what happened between the end of somebody's speech and the end of the answer.

    Units:
        Seconds of the process's monotonic clock; ``None`` for what did not happen.

    Args:
        speech_end: The person's last sound came in.
        end_of_turn: It was decided that the turn is over.
        first_token: The language model's first piece of text came.
        first_clause: The first text went to the synthesiser.
        first_audio: The first speech came out of a stage.
        first_audible: It was handed to the connection.
        done: The answer was over.
    """

    speech_end: float | None = None
    end_of_turn: float | None = None
    transcript: float | None = None
    first_token: float | None = None
    first_clause: float | None = None
    first_audio: float | None = None
    first_audible: float | None = None
    done: float | None = None


@dataclass(frozen=True, slots=True)
class TracedTurn:
    """A turn that is over."""

    session_id: str
    model: str
    response_id: str
    status: str
    reason: str
    times: TurnTimes


TraceTurn = Callable[[TracedTurn], None]
"""Takes a turn; neither raises nor waits."""
