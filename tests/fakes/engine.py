"""An engine without workers: a test reads what was asked and says what is answered, and when.

Everything is synchronous. Answers come by hand (``output``, ``complete``, ``fail``) or from a
script for each pipeline; scripted ones wait until ``deliver`` lets them out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from duologue.core.errors import CapacityError, DuologueError, EngineError
from duologue.core.fence import Fence
from duologue.engines.payloads import Payload
from duologue.engines.ports import Ended, Outcome, Output, Request, Subscriber

Answer = Callable[[Payload], Sequence[Payload | EngineError]]
"""What a pipeline gives for one input. An error among it fails the request."""


@dataclass
class FakeRequest:
    """A request as the engine has it.

    ``waiting`` holds scripted outputs that were not delivered yet.
    """

    request: Request
    subscriber: Subscriber
    inputs: list[Payload] = field(default_factory=list)
    input_ended: bool = False
    cancelled: bool = False
    credit: int | None = None
    waiting: deque[Payload | EngineError] = field(default_factory=deque)
    delivered: list[Payload] = field(default_factory=list)


class FakeEngine:
    """Implements ``EnginePort``.

    Args:
        answers: Scripts by pipeline.
        pipelines: Names of pipelines that are answered by hand.
        capacity: How many requests of a pipeline may run at a time; without bound if not named.
    """

    def __init__(
        self,
        answers: Mapping[str, Answer] | None = None,
        *,
        pipelines: Iterable[str] = (),
        capacity: Mapping[str, int] | None = None,
    ) -> None:
        self.answers = dict(answers or {})
        self.running: dict[str, FakeRequest] = {}
        self.submitted: list[Request] = []
        self.cancelled: list[str] = []
        self.unmatched_cancels = 0
        self.refusals: dict[str, DuologueError] = {}
        self._pipelines = {*self.answers, *pipelines}
        self._capacity = dict(capacity or {})
        self._ended: dict[str, FakeRequest] = {}

    # EnginePort

    def has_pipeline(self, name: str) -> bool:
        return name in self._pipelines

    def submit(self, request: Request, subscriber: Subscriber) -> None:
        """Refuses what ``refusals`` says for its pipeline."""
        if request.pipeline in self.refusals:
            raise self.refusals[request.pipeline]
        if request.pipeline not in self._pipelines:
            raise EngineError(f"no pipeline is called {request.pipeline!r}")
        if request.id in self.running:
            raise EngineError(f"a request {request.id} is running")
        limit = self._capacity.get(request.pipeline)
        if limit is not None and len(self.of(request.pipeline)) >= limit:
            raise CapacityError(f"{limit} of {limit} slots are taken", retry_after_s=1.0)
        self.submitted.append(request)
        fake = FakeRequest(request, subscriber, credit=request.credit)
        self.running[request.id] = fake
        if request.first is not None:
            self._take(fake, request.first)
        fake.input_ended = not request.more_input

    def append(self, request_id: str, payload: Payload) -> None:
        fake = self.running.get(request_id)
        if fake is not None and not fake.cancelled and not fake.input_ended:
            self._take(fake, payload)

    def finish_input(self, request_id: str) -> None:
        if request_id in self.running:
            self.running[request_id].input_ended = True

    def cancel(self, request_id: str) -> None:
        """Marks the request; its ``Ended`` comes with ``deliver`` or ``acknowledge_cancel``."""
        fake = self.running.get(request_id)
        if fake is None:
            self.unmatched_cancels += 1
        elif not fake.cancelled:
            fake.cancelled = True
            self.cancelled.append(request_id)

    def grant(self, request_id: str, credit: int) -> None:
        fake = self.running.get(request_id)
        if fake is not None and fake.credit is not None:
            fake.credit += credit

    def subscribe(self, request_id: str, subscriber: Subscriber) -> None:
        if request_id in self.running:
            self.running[request_id].subscriber = subscriber

    def refence(self, request_id: str, fence: Fence) -> None:
        if request_id in self.running:
            fake = self.running[request_id]
            fake.request = replace(fake.request, fence=fence)

    # For tests: what was asked

    def of(self, pipeline: str) -> list[FakeRequest]:
        """Running requests of a pipeline, oldest first."""
        return [fake for fake in self.running.values() if fake.request.pipeline == pipeline]

    def only(self, pipeline: str) -> FakeRequest:
        """The one running request of a pipeline."""
        (fake,) = self.of(pipeline)
        return fake

    # For tests: answers

    def output(self, request_id: str, payload: Payload) -> None:
        """Give an output now; after the request's end, as only a broken engine would."""
        fake = self.running.get(request_id) or self._ended[request_id]
        fake.delivered.append(payload)
        fake.subscriber.on_engine_event(Output(request_id, fake.request.fence, payload))

    def complete(self, request_id: str) -> None:
        """End a request well."""
        self._end(request_id, Outcome.COMPLETED)

    def fail(self, request_id: str, code: str = "stage_failed", message: str = "") -> None:
        """End a request badly."""
        self._end(request_id, Outcome.FAILED, code, message)

    def acknowledge_cancel(self, request_id: str) -> None:
        """End a request that was cancelled."""
        assert self.running[request_id].cancelled, f"{request_id} was not cancelled"
        self._end(request_id, Outcome.CANCELLED)

    def deliver(self, count: int | None = None) -> int:
        """Let out what the scripts have to say, as far as credit reaches.

        Requests take turns. One that has said all, and can get no further input, ends; so does
        one that was cancelled.

        Args:
            count: At most so many events; ``None``: all.

        Returns:
            How many events there were.
        """
        events = 0
        progress = True
        while progress:
            progress = False
            for request_id, fake in list(self.running.items()):
                if count is not None and events >= count:
                    return events
                if request_id in self.running and self._deliver_one(request_id, fake):
                    events += 1
                    progress = True
        return events

    def _take(self, fake: FakeRequest, payload: Payload) -> None:
        fake.inputs.append(payload)
        if fake.request.pipeline in self.answers:
            fake.waiting.extend(self.answers[fake.request.pipeline](payload))

    def _deliver_one(self, request_id: str, fake: FakeRequest) -> bool:
        if fake.cancelled:
            self.acknowledge_cancel(request_id)
            return True
        if fake.waiting:
            if fake.credit is not None and fake.credit <= 0:
                return False
            payload = fake.waiting.popleft()
            if isinstance(payload, EngineError):
                self.fail(request_id, payload.code, payload.message)
                return True
            if fake.credit is not None:
                fake.credit -= payload.cost()
            self.output(request_id, payload)
            return True
        if fake.input_ended and fake.request.pipeline in self.answers:
            self.complete(request_id)
            return True
        return False

    def _end(self, request_id: str, outcome: Outcome, code: str = "", message: str = "") -> None:
        fake = self._ended[request_id] = self.running.pop(request_id)
        ended = Ended(request_id, fake.request.fence, outcome, code, message)
        fake.subscriber.on_engine_event(ended)
