"""WebSocket frames as a server writes them: final, unmasked, uncompressed (RFC 6455 section 5.2).

This module must not know when a frame is due.
"""

from __future__ import annotations

import struct

GOING_AWAY = 1001
NORMAL = 1000

TEXT = 0x81
BINARY = 0x82
"""The first byte of a message of each kind."""

_CLOSE = 0x88
_PING = 0x89
_PONG = 0x8A
_MAX_REASON_BYTES = 123
_NEVER_ON_THE_WIRE = frozenset({0, 1005, 1006, 1015})
"""Codes that stand for a close without one; section 7.4.1 forbids sending them."""

_short_head = struct.Struct("!BB").pack
_medium_head = struct.Struct("!BBH").pack
_long_head = struct.Struct("!BBQ").pack


def message_frame(kind: int, message: bytes) -> bytes:
    """Return a message, ``TEXT`` or ``BINARY``, as one frame."""
    size = len(message)
    if size < 126:
        return _short_head(kind, size) + message
    if size < 65536:
        return _medium_head(kind, 126, size) + message
    return _long_head(kind, 127, size) + message


def close_frame(code: int, reason: str) -> bytes:
    """Return a close frame; the reason is cut to what fits, at a character."""
    text = reason.encode()[:_MAX_REASON_BYTES].decode(errors="ignore").encode()
    return _short_head(_CLOSE, 2 + len(text)) + struct.pack("!H", code) + text


def ping_frame() -> bytes:
    """Return a ping without a payload: a pong of any kind is a sign of life."""
    return _short_head(_PING, 0)


def pong_frame(payload: bytes | bytearray) -> bytes:
    """Return the answer to a ping."""
    return _short_head(_PONG, len(payload)) + payload


def answering_code(code: int) -> int:
    """Return the close code that answers a peer's: its own, where that may be written."""
    return NORMAL if code in _NEVER_ON_THE_WIRE else code
