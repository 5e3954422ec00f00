"""Judged by the ``wyoming`` package, which Home Assistant uses."""

from __future__ import annotations

import asyncio

import pytest
from wyoming.event import Event, async_read_event

from duologue.core.errors import ProtocolError
from duologue.gateway.wyoming.events import (
    MAX_LINE_BYTES,
    MAX_PAYLOAD_BYTES,
    WyomingEvent,
    encode_event,
    read_event,
)
from duologue.gateway.wyoming.messages import AudioForm


def stream(data: bytes) -> asyncio.StreamReader:
    reader = asyncio.StreamReader(limit=MAX_LINE_BYTES)
    reader.feed_data(data)
    reader.feed_eof()
    return reader


async def test_what_we_write_is_read_by_others_and_by_us() -> None:
    data = encode_event("audio-chunk", AudioForm(16_000, 2, 1), b"\0\1")

    theirs = await async_read_event(stream(data))
    assert theirs == Event("audio-chunk", {"rate": 16_000, "width": 2, "channels": 1}, b"\0\1")
    reader = stream(data + encode_event("audio-stop"))
    assert await read_event(reader) == WyomingEvent("audio-chunk", dict(theirs.data), b"\0\1")
    assert await read_event(reader) == WyomingEvent("audio-stop")
    assert await read_event(reader) is None


async def test_data_may_stand_in_the_line_too() -> None:
    line = b'{"type":"ping","data":{"text":"a"},"data_length":11}\n{"more": 1}'

    assert await read_event(stream(line)) == WyomingEvent("ping", {"text": "a", "more": 1})


@pytest.mark.parametrize(
    "data",
    [
        b"\n",
        b"[]\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b'{"type":7}\n',
        b'{"type":"ping","data_length":-1}\n',
        b'{"type":"ping","data_length":2}\n[]',
        b'{"type":"ping","data":{"a":' + b"[" * 5000 + b"\n",
        b'{"type":"audio-chunk","payload_length":%d}\n' % (MAX_PAYLOAD_BYTES + 1),
        b"x" * (2 * MAX_LINE_BYTES),
    ],
)
async def test_what_is_no_event_is_refused(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        await read_event(stream(data))


@pytest.mark.parametrize("data", [b"", b'{"type":"ping","data_length":20}\n{"text"'])
async def test_the_end_is_no_event(data: bytes) -> None:
    assert await read_event(stream(data)) is None
