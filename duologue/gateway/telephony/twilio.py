"""Twilio Media Streams, bidirectional: ``<Connect><Stream>``.

This module must not know calls or sessions.

Source:
    https://www.twilio.com/docs/voice/media-streams/websocket-messages
"""

from __future__ import annotations

import msgspec

from duologue.gateway.telephony.carrier import (
    CallStarted,
    CarrierMessage,
    Message,
    common_meaning,
    read_message,
    unsupported_format,
    write_payload,
)

MULAW = "audio/x-mulaw"


class _Format(msgspec.Struct, frozen=True):
    encoding: str = MULAW
    sampleRate: int = 8000


class _Start(msgspec.Struct, frozen=True):
    streamSid: str
    callSid: str = ""
    customParameters: dict[str, str] = msgspec.field(default_factory=dict)
    mediaFormat: _Format = _Format()


class _Message(Message, frozen=True):
    start: _Start | None = None


_DECODER = msgspec.json.Decoder(_Message)
_encode = msgspec.json.Encoder().encode


class Twilio:
    """How Twilio writes it."""

    name = "twilio"

    def decode(self, message: bytes) -> CarrierMessage | None:
        """Read a message; none for ``connected``, other tracks and what is new."""
        said = read_message(_DECODER, message)
        match said:
            case _Message(event="start", start=_Start() as start):
                form = start.mediaFormat
                if (form.encoding, form.sampleRate) != (MULAW, 8000):
                    raise unsupported_format(form.encoding, f"it must be {MULAW} at 8000 Hz")
                return CallStarted(
                    start.streamSid, start.callSid, "audio/pcmu", start.customParameters
                )
            case _:
                return common_meaning(said)

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
