"""Plivo Audio Streaming, ``<Stream bidirectional="true">``.

This module must not know calls or sessions.

Source:
    https://docs.plivo.com/docs/voice/xml/audiostream
"""

from __future__ import annotations

import msgspec

from duologue.gateway.telephony.carrier import (
    CallStarted,
    CarrierMessage,
    MarkPlayed,
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
    streamId: str
    callId: str = ""
    mediaFormat: _Format = _Format()


class _Message(Message, frozen=True):
    start: _Start | None = None
    name: str = ""
    extra_headers: str = ""


_DECODER = msgspec.json.Decoder(_Message)
_encode = msgspec.json.Encoder().encode


class Plivo:
    """How Plivo writes it."""

    name = "plivo"

    def decode(self, message: bytes) -> CarrierMessage | None:
        """Read a message; none for ``clearedAudio``, other tracks and what is new."""
        said = read_message(_DECODER, message)
        match said:
            case _Message(event="playedStream", name=name):
                return MarkPlayed(name)
            case _Message(event="start", start=_Start() as start):
                form = start.mediaFormat
                if (form.encoding, form.sampleRate) != (MULAW, 8000):
                    raise unsupported_format(
                        form.encoding, f'set contentType="{MULAW};rate=8000" in <Stream>'
                    )
                parameters = _pairs(said.extra_headers)
                return CallStarted(start.streamId, start.callId, "audio/pcmu", parameters)
            case _:
                return common_meaning(said)

    def sound(self, stream_id: str, payload: bytes) -> bytes:
        """Write sound."""
        media = {"contentType": MULAW, "sampleRate": 8000, "payload": write_payload(payload)}
        return _encode({"event": "playAudio", "streamId": stream_id, "media": media})

    def mark(self, stream_id: str, name: str) -> bytes:
        """Write a mark."""
        return _encode({"event": "checkpoint", "streamId": stream_id, "name": name})

    def clear(self, stream_id: str) -> bytes:
        """Write what forgets."""
        return _encode({"event": "clearAudio", "streamId": stream_id})


def _pairs(text: str) -> dict[str, str]:
    """``a=b,c=d``, in braces or not."""
    pairs = (pair.partition("=") for pair in text.strip("{} ").split(","))
    return {name.strip(): value.strip() for name, mark, value in pairs if mark}
