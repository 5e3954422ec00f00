"""How a client came in, for figures and lists. This module must not know transports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

from duologue.protocol.dialect import Family

TRANSPORTS = ("websocket", "webrtc", "telephony")
DIALECT_LABELS = (*get_args(Family), "carrier")


@dataclass(frozen=True, slots=True)
class Via:
    """The transport and the dialect of a session's client, as it was opened."""

    transport: str
    dialect: str


SOCKET = Via("websocket", "realtime")
