"""The engines of several session hosts as one: each request goes to the host with the fewest.

This module must not know links.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from duologue.core.fence import Fence
from duologue.engines.payloads import Payload
from duologue.engines.ports import Ended, EngineEvent, EnginePort, Request, Subscriber
from duologue.hosts.faults import host_lost


class FleetEngine:
    """An ``EnginePort``.

    Args:
        engines: Returns those that take requests, the best first.
        pipelines: What each of them serves.
    """

    def __init__(
        self, engines: Callable[[], Sequence[EnginePort]], pipelines: Iterable[str]
    ) -> None:
        self._engines = engines
        self._pipelines = frozenset(pipelines)
        self._running: dict[str, tuple[EnginePort, Subscriber]] = {}

    def has_pipeline(self, name: str) -> bool:
        """Tell whether requests for ``name`` can be served."""
        return name in self._pipelines

    def submit(self, request: Request, subscriber: Subscriber) -> None:
        """Send a request; raises ``CapacityError`` where there is no host."""
        engines = self._engines()
        if not engines:
            raise host_lost()
        self._running[request.id] = engines[0], subscriber
        try:
            engines[0].submit(request, self)
        except BaseException:
            del self._running[request.id]
            raise

    def append(self, request_id: str, payload: Payload) -> None:
        """Add input to a stream."""
        if (running := self._running.get(request_id)) is not None:
            running[0].append(request_id, payload)

    def finish_input(self, request_id: str) -> None:
        """Say that no further input follows."""
        if (running := self._running.get(request_id)) is not None:
            running[0].finish_input(request_id)

    def cancel(self, request_id: str) -> None:
        """Stop a request."""
        if (running := self._running.get(request_id)) is not None:
            running[0].cancel(request_id)

    def grant(self, request_id: str, credit: int) -> None:
        """Let a request produce more."""
        if (running := self._running.get(request_id)) is not None:
            running[0].grant(request_id, credit)

    def subscribe(self, request_id: str, subscriber: Subscriber) -> None:
        """Send the further events of a running request to another subscriber."""
        if (running := self._running.get(request_id)) is not None:
            self._running[request_id] = running[0], subscriber

    def refence(self, request_id: str, fence: Fence) -> None:
        """Let what a request produces carry another fence."""
        if (running := self._running.get(request_id)) is not None:
            running[0].refence(request_id, fence)

    # Subscriber

    def on_engine_event(self, event: EngineEvent) -> None:
        """Hand on what came of a request."""
        _, subscriber = self._running.get(event.request_id, (None, None))
        if isinstance(event, Ended):
            self._running.pop(event.request_id, None)
        if subscriber is not None:
            subscriber.on_engine_event(event)
