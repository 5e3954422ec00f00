"""The engine of a session host, for the plain requests of a gateway that is elsewhere.

This module must not know links, nor what requests are about.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from duologue.core.clock import Clock
from duologue.core.errors import EngineError
from duologue.core.fence import Fence
from duologue.engines.payloads import Payload
from duologue.engines.ports import Ended, Outcome, Output, Request, Subscriber
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
from duologue.hosts.faults import host_lost
from duologue.protocol.errors import ErrorCode


class RemoteEngine:
    """An ``EnginePort``. What the host refuses ends at once, as failed.

    Args:
        say: Puts a message on the link; ``None`` while there is none.
        pipelines: What the host serves.
    """

    def __init__(
        self,
        say: Callable[[], Callable[[ToEngine], None] | None],
        pipelines: Collection[str],
        clock: Clock,
    ) -> None:
        self._say = say
        self._pipelines = frozenset(pipelines)
        self._now = clock.now
        self._running: dict[str, tuple[Fence, Subscriber]] = {}

    def __len__(self) -> int:
        return len(self._running)

    def has_pipeline(self, name: str) -> bool:
        """Tell whether requests for ``name`` can be served."""
        return name in self._pipelines

    def submit(self, request: Request, subscriber: Subscriber) -> None:
        """Send a request.

        Raises:
            CapacityError: There is no host.
            EngineError: The id is in use.
        """
        say = self._say()
        if say is None:
            raise host_lost()
        if request.id in self._running:
            raise EngineError(f"there is a request {request.id}")
        self._running[request.id] = request.fence, subscriber
        deadline_s = request.deadline_s
        say(
            RequestSubmitted(
                id=request.id,
                pipeline=request.pipeline,
                fence=request.fence,
                first=request.first,
                more_input=request.more_input,
                credit=request.credit,
                timeout_s=None if deadline_s is None else deadline_s - self._now(),
            )
        )

    def append(self, request_id: str, payload: Payload) -> None:
        """Add input to a stream."""
        self._tell(request_id, InputAppended(request_id, payload))

    def finish_input(self, request_id: str) -> None:
        """Say that no further input follows."""
        self._tell(request_id, InputFinished(request_id))

    def cancel(self, request_id: str) -> None:
        """Stop a request."""
        self._tell(request_id, RequestCancelled(request_id))

    def grant(self, request_id: str, credit: int) -> None:
        """Let a request produce more."""
        self._tell(request_id, CreditGranted(request_id, credit))

    def subscribe(self, request_id: str, subscriber: Subscriber) -> None:
        """Send the further events of a running request to another subscriber."""
        if request_id in self._running:
            self._running[request_id] = self._running[request_id][0], subscriber

    def refence(self, request_id: str, fence: Fence) -> None:
        """Let what a request produces carry another fence."""
        if request_id in self._running:
            self._running[request_id] = fence, self._running[request_id][1]
            self._tell(request_id, RequestRefenced(request_id, fence))

    # From the link

    def receive(self, message: FromEngine) -> None:
        """Take what came of a request."""
        _, subscriber = self._running.get(message.id, (None, None))
        if subscriber is None:
            return
        match message:
            case RequestProduced(id=id_, fence=fence, payload=payload):
                subscriber.on_engine_event(Output(id_, fence, payload))
            case RequestOver(id=id_, fence=fence, outcome=outcome, code=code, message=text):
                del self._running[id_]
                subscriber.on_engine_event(Ended(id_, fence, outcome, code, text))

    def unsent(self, message: ToEngine, why: str) -> None:
        """An input is too long for a link: its request has failed."""
        fence, subscriber = self._running.pop(message.id, (None, None))
        if fence is None or subscriber is None:
            return
        if (say := self._say()) is not None:
            say(RequestCancelled(message.id))
        subscriber.on_engine_event(
            Ended(message.id, fence, Outcome.FAILED, ErrorCode.MESSAGE_TOO_LARGE, why)
        )

    def lost(self) -> None:
        """There is no host any more: all that runs has failed."""
        running, self._running = self._running, {}
        for id_, (fence, subscriber) in running.items():
            subscriber.on_engine_event(
                Ended(id_, fence, Outcome.FAILED, ErrorCode.HOST_LOST, "the session host is gone")
            )

    def _tell(self, request_id: str, message: ToEngine) -> None:
        say = self._say()
        if say is not None and request_id in self._running:
            say(message)
