"""The engine, for the plain requests of one gateway that is elsewhere.

This module must not know links, nor what requests are about.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from duologue.core.clock import Clock
from duologue.core.errors import CapacityError, EngineError
from duologue.engines.ports import Ended, EngineEvent, EnginePort, Outcome, Request
from duologue.hosts.engine_messages import (
    CreditGranted,
    FromEngine,
    InputAppended,
    InputFinished,
    RequestCancelled,
    RequestOver,
    RequestProduced,
    RequestRefenced,
    RequestSubmitted,
    ToEngine,
)
from duologue.protocol.errors import ErrorCode


class ServedEngine:
    """One gateway's requests; an engine ``Subscriber``.

    Args:
        edge: The gateway's name, which makes its ids unique here.
        say: Puts a message on the link.
    """

    def __init__(
        self, engine: EnginePort, edge: str, say: Callable[[FromEngine], None], clock: Clock
    ) -> None:
        self._engine = engine
        self._edge = edge
        self._say = say
        self._now = clock.now
        self._running: set[str] = set()

    def __len__(self) -> int:
        return len(self._running)

    def receive(self, message: ToEngine) -> None:
        """Do what the gateway asks for."""
        engine, id_ = self._engine, self._here(message.id)
        if isinstance(message, RequestSubmitted):
            self._submit(message, id_)
        elif id_ in self._running:
            match message:
                case InputAppended(payload=payload):
                    engine.append(id_, payload)
                case InputFinished():
                    engine.finish_input(id_)
                case RequestCancelled():
                    engine.cancel(id_)
                case CreditGranted(credit=credit):
                    engine.grant(id_, credit)
                case RequestRefenced(fence=fence):
                    engine.refence(id_, fence)

    def unsent(self, message: FromEngine, why: str) -> None:
        """An output is too long for a link: its request has failed."""
        id_ = self._here(message.id)
        if id_ in self._running:
            self._running.remove(id_)
            self._engine.cancel(id_)
            self._say(
                RequestOver(message.id, message.fence, Outcome.FAILED, ErrorCode.STAGE_FAILED, why)
            )

    def lost(self) -> None:
        """The gateway is gone: nobody wants what runs for it."""
        self._say = _unheard
        for id_ in list(self._running):
            self._engine.cancel(id_)

    # Subscriber

    def on_engine_event(self, event: EngineEvent) -> None:
        """Hand on what came of a request."""
        if event.request_id not in self._running:
            return  # it has failed before
        there = event.request_id.partition("/")[2]
        if isinstance(event, Ended):
            self._running.remove(event.request_id)
            self._say(RequestOver(there, event.fence, event.outcome, event.code, event.message))
        else:
            self._say(RequestProduced(there, event.fence, event.payload))

    def _submit(self, message: RequestSubmitted, id_: str) -> None:
        timeout_s = message.timeout_s
        request = Request(
            id=id_,
            pipeline=message.pipeline,
            fence=message.fence,
            first=message.first,
            more_input=message.more_input,
            credit=message.credit,
            deadline_s=None if timeout_s is None else self._now() + timeout_s,
        )
        self._running.add(id_)
        try:
            self._engine.submit(request, self)
        except (CapacityError, EngineError) as exc:
            with suppress(KeyError):
                self._running.remove(id_)
            self._say(RequestOver(message.id, message.fence, Outcome.FAILED, exc.code, exc.message))

    def _here(self, id_: str) -> str:
        return f"{self._edge}/{id_}"


def _unheard(_message: FromEngine) -> None:
    """The gateway is gone."""
