"""The opening handshake: what a client asks for, checked, and the answer (RFC 6455 section 4).

This module must not know who may come in.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Iterable

from multidict import CIMultiDict, CIMultiDictProxy

from duologue.core.errors import ClientError

Headers = CIMultiDictProxy[str] | CIMultiDict[str]

_KEY_SALT = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_VERSION = "13"
_NONCE_BYTES = 16


def check_upgrade(headers: Headers) -> None:
    """Refuse a request that is no complete handshake.

    Raises:
        ClientError: It is not, for the reason in the message.
    """
    if headers.get("Upgrade", "").strip().lower() != "websocket":
        raise ClientError("this address speaks WebSocket: connect with ws:// or wss://")
    if "upgrade" not in {token.lower() for token in _tokens(headers, "Connection")}:
        raise ClientError(
            "the header 'Connection: upgrade' is missing; a proxy in between may have removed it"
        )
    version = headers.get("Sec-WebSocket-Version", "")
    if version != _VERSION:
        raise ClientError(f"Sec-WebSocket-Version is {version[:20]!r}, and must be {_VERSION}")
    try:
        nonce = base64.b64decode(headers.get("Sec-WebSocket-Key", ""), validate=True)
    except (binascii.Error, ValueError):
        nonce = b""
    if len(nonce) != _NONCE_BYTES:
        raise ClientError(f"Sec-WebSocket-Key is not base64 of {_NONCE_BYTES} bytes")


def offered_protocols(headers: Headers) -> list[str]:
    """Return the subprotocols that a client offers, in its order."""
    return list(_tokens(headers, "Sec-WebSocket-Protocol"))


def answer(headers: Headers, protocol: str | None) -> dict[str, str]:
    """Return the headers that accept a checked handshake; no extension is ever selected.

    Args:
        protocol: The subprotocol to select, one of those offered.
    """
    digest = hashlib.sha1(
        headers["Sec-WebSocket-Key"].strip().encode() + _KEY_SALT, usedforsecurity=False
    ).digest()
    accepted = {
        "Upgrade": "websocket",
        "Connection": "upgrade",
        "Sec-WebSocket-Accept": base64.b64encode(digest).decode(),
    }
    if protocol is not None:
        accepted["Sec-WebSocket-Protocol"] = protocol
    return accepted


def _tokens(headers: Headers, name: str) -> Iterable[str]:
    return (token.strip() for line in headers.getall(name, []) for token in line.split(","))
