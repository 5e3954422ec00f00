"""What all carriers say and understand; each writes it in JSON of its own.

A carrier connects to us for each call, says once what the call is, then sends 20 ms of sound at a
time and plays what we send. It can be told to forget what it has not played yet, and it says when
it has played up to a mark. This module must not know any carrier, nor sessions.
"""

from __future__ import annotations

import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias, TypeVar

import msgspec
import pybase64

from duologue.protocol.errors import ErrorCode, refused
from duologue.protocol.json_integers import refuse_wide_integers
from duologue.protocol.json_refusals import refusal

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


class Media(msgspec.Struct, frozen=True):
    """Sound in a message."""

    payload: str
    track: str = "inbound"


class Dtmf(msgspec.Struct, frozen=True):
    """A key in a message."""

    digit: str


class Mark(msgspec.Struct, frozen=True):
    """A mark in a message."""

    name: str


class Message(msgspec.Struct, frozen=True):
    """What the messages of all carriers have in common; each adds how its calls start."""

    event: str
    media: Media | None = None
    dtmf: Dtmf | None = None
    mark: Mark | None = None


M = TypeVar("M", bound=Message)


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


def read_message(decoder: msgspec.json.Decoder[M], message: bytes) -> M:
    """Read a message in one carrier's form.

    Raises:
        ProtocolError: It is malformed.
    """
    refuse_wide_integers(message)
    try:
        return decoder.decode(message)
    except (msgspec.MsgspecError, RecursionError) as exc:
        raise refusal(exc, message) from None


def common_meaning(said: Message) -> CarrierMessage | None:
    """Return what a message means with every carrier; none for other tracks and what is new.

    Raises:
        ProtocolError: Its sound is no base64.
    """
    match said:
        case Message(event="media", media=Media(payload=payload, track="inbound")):
            return Sound(read_payload(payload))
        case Message(event="mark", mark=Mark(name=name)):
            return MarkPlayed(name)
        case Message(event="dtmf", dtmf=Dtmf(digit=digit)):
            return KeyPressed(digit)
        case Message(event="stop"):
            return CallEnded()
        case _:
            return None


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
