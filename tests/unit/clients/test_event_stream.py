from __future__ import annotations

import asyncio
import gc
from itertools import count

import pytest

from duologue.clients.errors import ConnectionLost, EventsMissed
from duologue.clients.event_stream import BACKLOG, EventStream, EventStreams
from duologue.protocol.events import AudioCleared, AudioCommitted

NUMBERS = count()


def event() -> AudioCommitted:
    return AudioCommitted(previous_item_id=None, item_id=str(next(NUMBERS)))


async def read(stream: EventStream) -> list[object]:
    return [each async for each in stream]


async def test_the_first_reader_reads_from_the_beginning_and_others_from_now_on() -> None:
    streams = EventStreams()
    events = [event() for _ in range(3)]
    streams.put(events[0])
    first = streams.open()
    streams.put(events[1])
    second = streams.open()
    streams.put(events[2])
    streams.end(None)
    assert await read(first) == events
    assert await read(second) == events[2:]


async def test_a_reader_waits_for_the_next_event() -> None:
    stream = EventStream()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(anext(stream))  # type: ignore[arg-type]
        await asyncio.sleep(0)
        stream.put(AudioCleared())
    assert task.result() == AudioCleared()


async def test_one_who_reads_too_slowly_is_told_and_goes_on_with_what_is_new() -> None:
    stream = EventStream(capacity=2)
    events = [event() for _ in range(5)]
    for each in events[:4]:
        stream.put(each)
    assert [await anext(stream), await anext(stream)] == events[:2]
    with pytest.raises(EventsMissed, match="2 events were missed: more than 2"):
        await anext(stream)
    stream.put(events[4])
    assert await anext(stream) == events[4]


async def test_a_lost_connection_is_raised_after_the_last_event() -> None:
    streams = EventStreams()
    stream = streams.open()
    last = event()
    streams.put(last)
    streams.end(ConnectionLost("gone"))
    assert await anext(stream) == last
    with pytest.raises(ConnectionLost):
        await anext(stream)
    with pytest.raises(ConnectionLost):
        await anext(streams.from_now())


async def test_what_nobody_reads_is_bounded() -> None:
    streams = EventStreams()
    events = [event() for _ in range(BACKLOG + 10)]
    for each in events:
        streams.put(each)
    streams.end(None)
    assert await read(streams.open()) == events[10:]


async def test_a_reader_that_nobody_holds_is_forgotten() -> None:
    streams = EventStreams()
    stream = streams.from_now()
    assert len(streams._streams) == 1
    del stream
    gc.collect()
    assert len(streams._streams) == 0
