"""Readers of a call's events, each at its own pace, none of which can hold the call up.

This module must not know what events mean.
"""

from __future__ import annotations

import asyncio
import weakref
from collections import deque
from typing import TypeVar

from duologue.clients.errors import CallEnded, CallError, EventsMissed
from duologue.clients.machine import EventOrUnknown

E = TypeVar("E")

CAPACITY = 4096
"""Events that a reader may be behind: minutes of a busy call."""

BACKLOG = 256
"""Events kept for the first reader, from the beginning of the call."""


class EventStream:
    """One reader: ``async for event in stream``.

    Ends when one side hangs up. A reader that is further behind than ``capacity`` gets
    ``EventsMissed`` once it has read what is left.
    """

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._capacity = capacity
        self._events: deque[EventOrUnknown] = deque()
        self._news = asyncio.Event()
        self._missed = 0
        self._end: CallError | None = None
        self._ended = False

    def __aiter__(self) -> EventStream:
        return self

    async def __anext__(self) -> EventOrUnknown:
        while not self._events:
            if self._missed:
                missed, self._missed = self._missed, 0
                raise EventsMissed(
                    f"{missed} events were missed: more than {self._capacity} were waiting to be "
                    "read. Read faster, or look at the call's transcript instead."
                )
            if self._ended:
                if self._end is not None:
                    raise self._end
                raise StopAsyncIteration
            self._news.clear()
            await self._news.wait()
        return self._events.popleft()

    def put(self, event: EventOrUnknown) -> None:
        """Add an event; after the first that does not fit, nothing until the reader was told."""
        if self._missed or len(self._events) >= self._capacity:
            self._missed += 1
        else:
            self._events.append(event)
        self._news.set()

    def end(self, error: CallError | None) -> None:
        """Nothing more comes; ``error`` is raised to the reader after the last event."""
        self._ended = True
        self._end = error
        self._news.set()


class EventStreams:
    """All readers of one call. One that nobody holds any more is forgotten."""

    def __init__(self) -> None:
        self._streams: weakref.WeakSet[EventStream] = weakref.WeakSet()
        self._backlog: deque[EventOrUnknown] | None = deque(maxlen=BACKLOG)
        self._ended: tuple[CallError | None] | None = None

    @property
    def past(self) -> tuple[EventOrUnknown, ...]:
        """What the first reader would be given, were it to come now."""
        return tuple(self._backlog or ())

    def open(self) -> EventStream:
        """Begin to read: the first reader from the call's first event, others from now on."""
        stream = self.from_now()
        for event in self._backlog or ():
            stream.put(event)
        self._backlog = None
        return stream

    def from_now(self) -> EventStream:
        """Begin to read with the next event."""
        stream = EventStream()
        if self._ended is not None:
            stream.end(*self._ended)
        self._streams.add(stream)
        return stream

    async def next_of(self, kind: type[E], timeout_s: float) -> E:
        """Return the next event of a kind.

        Raises:
            TimeoutError: None came.
            CallError: The call ended first.
        """
        async with asyncio.timeout(timeout_s):
            async for event in self.from_now():
                if isinstance(event, kind):
                    return event
        raise CallEnded(f"the call ended before there was a {kind.__name__}")

    def put(self, event: EventOrUnknown) -> None:
        """Hand an event to all readers."""
        if self._backlog is not None:
            self._backlog.append(event)
        for stream in self._streams:
            stream.put(event)

    def end(self, error: CallError | None) -> None:
        """The call is over."""
        self._ended = (error,)
        for stream in self._streams:
            stream.end(error)
