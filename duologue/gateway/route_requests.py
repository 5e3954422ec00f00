"""One request to the engine, as something that a route can wait for.

Leaving the ``with`` cancels what has not ended, whatever the reason for leaving. Calls do not come
by here: their sessions submit requests themselves. This module must not know routes or what a
request is about.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from duologue.core.clock import Clock
from duologue.core.errors import CapacityError, EngineError, ProtocolError, StageTimeout
from duologue.core.fence import Fence, Lane
from duologue.core.ids import IdMaker
from duologue.engines.payloads import Payload
from duologue.engines.ports import Ended, EngineEvent, EnginePort, Outcome, Request
from duologue.protocol.errors import ErrorCode

RETRY_AFTER_S = 1.0


class Outputs:
    """What comes out of one request: ``async for payload in outputs``.

    Outputs that nobody has taken yet are bounded by the request's credit, which is granted anew
    for what is taken.

    Concurrency:
        One task takes; ``append`` and ``finish`` may come from others of the same loop.
    """

    def __init__(
        self, engine: EnginePort, request: Request, silence_s: float | None = None
    ) -> None:
        self._silence_s = silence_s
        self._has_all_input = not request.more_input
        self._engine = engine
        self._request = request
        self._waiting: deque[Payload] = deque()
        self._ended: Ended | None = None
        self._closed = False
        self._news = asyncio.Event()

    def append(self, payload: Payload) -> None:
        """Add input."""
        self._engine.append(self._request.id, payload)

    def finish(self) -> None:
        """No further input follows."""
        self._engine.finish_input(self._request.id)
        self._has_all_input = True
        self._news.set()

    def on_engine_event(self, event: EngineEvent) -> None:
        """Take an event of the engine."""
        if isinstance(event, Ended):
            self._ended = event
        elif not self._closed:
            self._waiting.append(event.payload)
        self._news.set()

    def close(self) -> None:
        """Want no more; what still runs is cancelled."""
        self._closed = True
        self._waiting.clear()
        self._news.set()
        if self._ended is None:
            self._engine.cancel(self._request.id)

    def __aiter__(self) -> Outputs:
        return self

    async def __anext__(self) -> Payload:
        """Return the next output.

        Raises:
            EngineError: The request failed.
            StageTimeout: It has all its input, and nothing came for too long.
            ProtocolError: It failed because of what was asked.
        """
        while not self._waiting:
            if self._closed:
                raise StopAsyncIteration
            if self._ended is not None:
                raise _end(self._ended)
            self._news.clear()
            await self._wait_for_news()
        payload = self._waiting.popleft()
        if self._request.credit is not None and (taken := payload.cost()):
            self._engine.grant(self._request.id, taken)
        return payload

    async def _wait_for_news(self) -> None:
        # A model that waits for input may be silent; one that hangs must be found long before the
        # time of the whole request is over.
        limit_s = self._silence_s if self._has_all_input else None
        try:
            async with asyncio.timeout(limit_s):
                await self._news.wait()
        except TimeoutError:
            raise StageTimeout(f"nothing came from the model for {self._silence_s} s") from None


class RouteRequests:
    """Submits requests.

    Args:
        timeout_s: What takes longer has failed.
        silence_s: What has all its input and says nothing for so long has failed, too.
    """

    def __init__(
        self,
        engine: EnginePort,
        clock: Clock,
        new_id: IdMaker,
        timeout_s: float,
        silence_s: float | None = None,
    ) -> None:
        self._silence_s = silence_s
        self._engine = engine
        self._clock = clock
        self._new_id = new_id
        self._timeout_s = timeout_s

    @contextmanager
    def request(
        self,
        pipeline: str,
        first: Payload | None = None,
        *,
        more_input: bool = False,
        credit: int | None = None,
        timeout_s: float | None = None,
    ) -> Iterator[Outputs]:
        """Run a request while the ``with`` lasts.

        Args:
            pipeline: As ``engines.ports.Request``, likewise the others.
            credit: How much may wait here to be taken.
            timeout_s: Where the usual time is too short.

        Raises:
            CapacityError: There is no room for it.
            EngineError: It cannot be run.
        """
        request_id = self._new_id("req")
        request = Request(
            id=request_id,
            pipeline=pipeline,
            fence=Fence(request_id, Lane(request_id), 0),
            first=first,
            more_input=more_input,
            credit=credit,
            deadline_s=self._clock.now() + (timeout_s or self._timeout_s),
        )
        outputs = Outputs(self._engine, request, self._silence_s)
        self._engine.submit(request, outputs)
        try:
            yield outputs
        finally:
            outputs.close()


_REFUSALS = (
    ErrorCode.SERVER_FULL,
    ErrorCode.HOST_LOST,
    ErrorCode.STAGE_ASLEEP,
    ErrorCode.STAGE_PAUSED,
)


def _end(ended: Ended) -> Exception:
    if ended.outcome is Outcome.COMPLETED:
        return StopAsyncIteration()
    if ended.code == ErrorCode.CONTEXT_LENGTH_EXCEEDED:
        return ProtocolError(
            "the messages are longer than what this model can read; send fewer or shorter ones",
            code=ErrorCode.CONTEXT_LENGTH_EXCEEDED,
            param="messages",
        )
    if ended.code in _REFUSALS:
        # Of an engine in another process, which cannot refuse at once; or while it waited.
        return CapacityError(ended.message, code=ended.code, retry_after_s=RETRY_AFTER_S)
    return EngineError(ended.message or ended.outcome.value, code=ended.code or None)
