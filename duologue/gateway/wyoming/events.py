"""Events of the Wyoming protocol: a line of JSON, more JSON, bytes.

This module must not know what events mean.

Source:
    The Wyoming protocol's description, https://github.com/OHF-Voice/wyoming.
"""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from duologue.core.errors import ProtocolError
from duologue.protocol.json_integers import refuse_wide_integers

MAX_LINE_BYTES = 64 * 1024
MAX_DATA_BYTES = 256 * 1024
MAX_PAYLOAD_BYTES = 1024 * 1024

VERSION = "1.7.2"
"""Of the protocol that is spoken here."""


class WyomingEvent(msgspec.Struct, frozen=True):
    """One event. Its data is as free as the protocol leaves it; ``typed`` reads it."""

    type: str
    data: dict[str, Any] = {}
    payload: bytes = b""


class _Header(msgspec.Struct):
    type: str
    data: dict[str, Any] | None = None
    data_length: int | None = None
    payload_length: int | None = None


class _WrittenHeader(msgspec.Struct, omit_defaults=True):
    type: str
    version: str
    data_length: int = 0
    payload_length: int = 0


_HEADER = msgspec.json.Decoder(_Header)
_DATA: msgspec.json.Decoder[dict[str, Any]] = msgspec.json.Decoder(dict[str, Any])


async def read_event(reader: asyncio.StreamReader) -> WyomingEvent | None:
    """Return the next event; none at the end of the connection.

    Args:
        reader: With ``MAX_LINE_BYTES`` as its limit.

    Raises:
        ProtocolError: It is no event, or too large; where the next one begins is not known then.
    """
    try:
        line = await reader.readline()
        if not line:
            return None
        refuse_wide_integers(line)
        header = _HEADER.decode(line)
        more = await _read(reader, header.data_length or 0, MAX_DATA_BYTES)
        refuse_wide_integers(more)
        data = {**(header.data or {}), **(_DATA.decode(more) if more else {})}
        payload = await _read(reader, header.payload_length or 0, MAX_PAYLOAD_BYTES)
    except asyncio.IncompleteReadError:
        return None
    except (msgspec.MsgspecError, ValueError, RecursionError) as exc:
        raise ProtocolError("this is no event of the Wyoming protocol") from exc
    return WyomingEvent(header.type, data, payload)


async def _read(reader: asyncio.StreamReader, length: int, limit: int) -> bytes:
    if not 0 <= length <= limit:
        raise ProtocolError(f"a part of an event has {length} bytes, the limit is {limit}")
    return await reader.readexactly(length)


def encode_event(type_: str, data: msgspec.Struct | None = None, payload: bytes = b"") -> bytes:
    """Return an event as it is sent."""
    body = b"" if data is None else msgspec.json.encode(data)
    header = _WrittenHeader(type_, VERSION, len(body), len(payload))
    return msgspec.json.encode(header) + b"\n" + body + payload
