"""What all carriers say and understand; each writes it in JSON of its own.

A carrier connects to us for each call, says once what the call is, then sends 20 ms of sound at a
time and plays what we send. It can be told to forget what it has not played yet, and it says when
it has played up to a mark. This module must not know any carrier, nor sessions.
"""

from __future__ import annotations

import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

import pybase64

from duologue.protocol.errors import ErrorCode, refused

PhoneFormat: TypeAlias = Literal["audio/pcmu", "audio/pcma"]
"""G.711: 8 kHz mono, a byte each sample."""

FRAME_BYTES = 160
FRAME_S = 0.020

MAX_MESSAGE_BYTES = 64 * 1024
"""A carrier's messages have a few hundred bytes."""


@dataclass(frozen=True, slots=True)
class CallStarted:
    """A call begins.

    Args:
        stream_id: The carrier's name of the stream; some want it back in every message.
        parameters: What whoever set the call up wants us to know.
    """

    stream_id: str
    call_id: str
    format: PhoneFormat
    parameters: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Sound:
    """What the caller says.

    Args:
        number: Its place, where the carrier does not promise to keep the order.
    """

    payload: bytes
    number: int | None = None


@dataclass(frozen=True, slots=True)
class KeyPressed:
    """The caller has pressed a key of the telephone."""

    key: str


@dataclass(frozen=True, slots=True)
class MarkPlayed:
    """All sound before a mark was played, or forgotten."""

    name: str


@dataclass(frozen=True, slots=True)
class CallEnded:
    """The caller has hung up, or the carrier streams no more."""


CarrierMessage: TypeAlias = CallStarted | Sound | KeyPressed | MarkPlayed | CallEnded


class Carrier(Protocol):
    """The language of one carrier."""

    name: str

    def decode(self, message: bytes) -> CarrierMessage | None:
        """Read a message; none for what does not matter.

        Raises:
            ProtocolError: It is malformed, or in a format that we do not speak.
        """
        ...

    def sound(self, stream_id: str, payload: bytes) -> bytes:
        """Write sound to be played after all that was sent before."""
        ...

    def mark(self, stream_id: str, name: str) -> bytes:
        """Ask to be told when all that was sent so far has been played."""
        ...

    def clear(self, stream_id: str) -> bytes:
        """Have the carrier forget what it has not played."""
        ...


def read_payload(text: str) -> bytes:
    """Return the sound in a message.

    Raises:
        ProtocolError: It is no base64.
    """
    try:
        return pybase64.b64decode(text, validate=True)
    except binascii.Error:
        raise refused("the payload is no base64", "payload", ErrorCode.INVALID_BASE64) from None


def write_payload(payload: bytes) -> str:
    """Return sound as it stands in a message."""
    return pybase64.b64encode(payload).decode("ascii")


def unsupported_format(encoding: str, hint: str) -> Exception:
    """Return the error for a call in a format that we do not speak."""
    return refused(
        f"the call is in {encoding[:80]!r}; {hint}", "mediaFormat", ErrorCode.UNSUPPORTED
    )
