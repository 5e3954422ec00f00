"""What a session machine wants done outside itself. The shell performs these in order."""

from __future__ import annotations

from dataclasses import dataclass

from duologue.core.fence import Fence
from duologue.engines.payloads import Payload
from duologue.engines.ports import Request


@dataclass(frozen=True, slots=True)
class SubmitRequest:
    """Start work in the engine."""

    request: Request


@dataclass(frozen=True, slots=True)
class AppendInput:
    """Add input to a running request."""

    request_id: str
    payload: Payload


@dataclass(frozen=True, slots=True)
class FinishInput:
    """No further input follows for a request."""

    request_id: str


@dataclass(frozen=True, slots=True)
class CancelRequest:
    """Stop a request."""

    request_id: str


@dataclass(frozen=True, slots=True)
class GrantCredit:
    """Let a request produce more."""

    request_id: str
    credit: int


@dataclass(frozen=True, slots=True)
class RefenceRequest:
    """Let what a request produces from now on carry another fence."""

    request_id: str
    fence: Fence


@dataclass(frozen=True, slots=True)
class ReportFailure:
    """Let people know that a part of what hears the person has failed.

    Clients are not told: their call goes on, and they can do nothing about it.
    """

    part: str
    code: str


@dataclass(frozen=True, slots=True)
class LetGo:
    """Give up the connection, for the error code ``reason``; the session waits for another."""

    reason: str


@dataclass(frozen=True, slots=True)
class EndSession:
    """The session is over; ``reason`` is an error code or ``closed``."""

    reason: str


EngineEffect = (
    SubmitRequest | AppendInput | FinishInput | CancelRequest | GrantCredit | RefenceRequest
)
"""What is the engine's business."""

Effect = EngineEffect | ReportFailure | LetGo | EndSession
