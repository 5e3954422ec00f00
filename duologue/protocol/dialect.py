"""A dialect: how commands and events are written on one connection.

Chosen at the handshake and fixed for the life of the connection, so that two never mix. This
module must not know how any is written; each is a module beside this one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from duologue.protocol.commands import Command
from duologue.protocol.events import Event

HEADS_KEPT = 1024
"""What all audio deltas of an answer have in common is written once. So many answers are being said
at most in one process; those that are over go when others come."""

OnRequest: TypeAlias = Literal["beta", "duplex"]
"""Which messages there are, besides those of the Realtime API as it is now."""

Family: TypeAlias = Literal["realtime", OnRequest]
"""Which messages there are."""

Encoding: TypeAlias = Literal["json", "msgpack"]
"""How they are written."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """The two functions that a connection needs.

    Args:
        family: Also the dialect's label in figures and lists.
        decode_command: Reads one message of a client; raises ``ClientError``.
        encode_event: Writes one event with its number; None where the dialect has no such event.
        binary: Messages go out in binary frames, else in text frames.
    """

    family: Family
    decode_command: Callable[[bytes], Command]
    encode_event: Callable[[Event, int], bytes | None]
    binary: bool = False
