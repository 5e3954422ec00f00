"""Twilio Media Streams, bidirectional: ``<Connect><Stream>``.

This module must not know calls or sessions.

Source:
    https://www.twilio.com/docs/voice/media-streams/websocket-messages
"""

from __future__ import annotations

import msgspec

from duologue.gateway.telephony.carrier import (
    CallEnded,
    CallStarted,
    CarrierMessage,
    KeyPressed,
    MarkPlayed,
    Sound,
    read_payload,
    unsupported_format,
    write_payload,
)
from duologue.protocol.json_refusals import refusal

MULAW = "audio/x-mulaw"


class _Format(msgspec.Struct, frozen=True):
    encoding: str = MULAW
    sampleRate: int = 8000


class _Start(msgspec.Struct, frozen=True):
    streamSid: str
    callSid: str = ""
    customParameters: dict[str, str] = msgspec.field(default_factory=dict)
    mediaFormat: _Format = _Format()


class _Media(msgspec.Struct, frozen=True):
    payload: str
    track: str = "inbound"


class _Dtmf(msgspec.Struct, frozen=True):
    digit: str


class _Mark(msgspec.Struct, frozen=True):
    name: str


class _Message(msgspec.Struct, frozen=True):
    event: str
    start: _Start | None = None
    media: _Media | None = None
    dtmf: _Dtmf | None = None
    mark: _Mark | None = None


_DECODER = msgspec.json.Decoder(_Message)
_encode = msgspec.json.Encoder().encode


class Twilio:
    """How Twilio writes it."""

    name = "twilio"

    def decode(self, message: bytes) -> CarrierMessage | None:
        """Read a message; none for ``connected``, other tracks and what is new."""
        try:
            said = _DECODER.decode(message)
        except (msgspec.MsgspecError, RecursionError) as exc:
            raise refusal(exc, message) from None
        match said:
            case _Message(event="media", media=_Media(payload=payload, track="inbound")):
                return Sound(read_payload(payload))
            case _Message(event="mark", mark=_Mark(name=name)):
                return MarkPlayed(name)
            case _Message(event="dtmf", dtmf=_Dtmf(digit=digit)):
                return KeyPressed(digit)
            case _Message(event="start", start=_Start() as start):
                form = start.mediaFormat
                if (form.encoding, form.sampleRate) != (MULAW, 8000):
                    raise unsupported_format(form.encoding, f"it must be {MULAW} at 8000 Hz")
                return CallStarted(
                    start.streamSid, start.callSid, "audio/pcmu", start.customParameters
                )
            case _Message(event="stop"):
                return CallEnded()
            case _:
                return None

    def sound(self, stream_id: str, payload: bytes) -> bytes:
        """Write sound."""
        media = {"payload": write_payload(payload)}
        return _encode({"event": "media", "streamSid": stream_id, "media": media})

    def mark(self, stream_id: str, name: str) -> bytes:
        """Write a mark."""
        return _encode({"event": "mark", "streamSid": stream_id, "mark": {"name": name}})

    def clear(self, stream_id: str) -> bytes:
        """Write what forgets."""
        return _encode({"event": "clear", "streamSid": stream_id})
