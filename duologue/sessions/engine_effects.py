"""Performs those effects of a session machine that are the engine's business.

This module must not know what any of the work is for.
"""

from __future__ import annotations

from collections.abc import Callable

from duologue.core.errors import CapacityError, DuologueError, EngineError
from duologue.engines.ports import Ended, EnginePort, Outcome, Request, Subscriber
from duologue.sessions.effects import (
    AppendInput,
    CancelRequest,
    EngineEffect,
    FinishInput,
    GrantCredit,
    RefenceRequest,
    SubmitRequest,
)

OnRefused = Callable[[Request, DuologueError], None]


class EngineEffects:
    """The engine as one session uses it.

    Args:
        on_refused: Is told of requests that the engine does not take.
    """

    __slots__ = ("_engine", "_on_refused")

    def __init__(self, engine: EnginePort, on_refused: OnRefused) -> None:
        self._engine = engine
        self._on_refused = on_refused

    def perform(self, effect: EngineEffect, subscriber: Subscriber) -> Ended | None:
        """Do what a machine wants of the engine.

        Returns:
            The end of a request that was not even taken; the machine is still to hear of it.
        """
        match effect:
            case AppendInput(request_id=request_id, payload=payload):
                self._engine.append(request_id, payload)
            case SubmitRequest(request=request):
                return self._submit(request, subscriber)
            case GrantCredit(request_id=request_id, credit=credit):
                self._engine.grant(request_id, credit)
            case RefenceRequest(request_id=request_id, fence=fence):
                self._engine.refence(request_id, fence)
            case FinishInput(request_id=request_id):
                self._engine.finish_input(request_id)
            case CancelRequest(request_id=request_id):
                self._engine.cancel(request_id)
        return None

    def _submit(self, request: Request, subscriber: Subscriber) -> Ended | None:
        try:
            self._engine.submit(request, subscriber)
        except (CapacityError, EngineError) as exc:
            self._on_refused(request, exc)
            return Ended(request.id, request.fence, Outcome.FAILED, exc.code, exc.message)
        return None
