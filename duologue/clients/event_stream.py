"""Readers of a call's events and answers, each at its own pace, none of which can hold it up.

This module must not know what events mean.
"""

from __future__ import annotations

import asyncio
import weakref
from collections import deque
from typing import Generic, Self, TypeVar

from duologue.clients.errors import CallEnded, CallError, EventsMissed
from duologue.clients.machine import EventOrUnknown

E = TypeVar("E")
T = TypeVar("T")

CAPACITY = 4096
"""Events that a reader may be behind: minutes of a busy call."""

BACKLOG = 256
"""Events kept for the first reader, from the beginning of the call."""


class Reader(Generic[T]):
    """One reader: ``async for each in reader``.

    Ends when one side hangs up. A reader that is too far behind gets ``EventsMissed`` once it has
    read what is left.
    """

    def __init__(self) -> None:
        self._waiting: deque[T] = deque()
        self._news = asyncio.Event()
        self._missed = 0
        self._end: CallError | None = None
        self._ended = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        while not self._waiting:
            if self._missed:
                missed, self._missed = self._missed, 0
                raise EventsMissed(self._complaint(missed))
            if self._ended:
                if self._end is not None:
                    raise self._end
                raise StopAsyncIteration
            self._news.clear()
            await self._news.wait()
        return self._waiting.popleft()

    def put(self, new: T) -> None:
        """Add one; after the first that does not fit, nothing until the reader was told."""
        if self._missed or self._is_full():
            self._missed += 1
        else:
            self._waiting.append(new)
        self._news.set()

    def end(self, error: CallError | None) -> None:
        """Nothing more comes; ``error`` is raised to the reader after the last one."""
        self._ended = True
        self._end = error
        self._news.set()

    def _is_full(self) -> bool:
        raise NotImplementedError

    def _complaint(self, missed: int) -> str:
        raise NotImplementedError


class EventStream(Reader[EventOrUnknown]):
    """One reader of events; it may be ``capacity`` of them behind."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        super().__init__()
        self._capacity = capacity

    def _is_full(self) -> bool:
        return len(self._waiting) >= self._capacity

    def _complaint(self, missed: int) -> str:
        return (
            f"{missed} events were missed: more than {self._capacity} were waiting to be "
            "read. Read faster, or look at the call's transcript instead."
        )


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
