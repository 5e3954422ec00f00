"""Telnyx Media Streaming, bidirectional with ``stream_bidirectional_mode: rtp``.

This module must not know calls or sessions.

Source:
    https://developers.telnyx.com/docs/voice/programmable-voice/media-streaming
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from duologue.gateway.telephony.carrier import (
    CallStarted,
    CarrierMessage,
    Media,
    Message,
    PhoneFormat,
    Sound,
    common_meaning,
    read_message,
    read_payload,
    unsupported_format,
    write_payload,
)

_FORMATS: Mapping[tuple[str, int], PhoneFormat] = MappingProxyType(
    {("PCMU", 8000): "audio/pcmu", ("PCMA", 8000): "audio/pcma"}
)


class _Format(msgspec.Struct, frozen=True):
    encoding: str = "PCMU"
    sample_rate: int = 8000


class _Start(msgspec.Struct, frozen=True):
    call_control_id: str = ""
    custom_parameters: dict[str, str] | None = None
    media_format: _Format = _Format()


class _Media(Media, frozen=True):
    chunk: str | int | None = None


class _Message(Message, frozen=True):
    stream_id: str = ""
    start: _Start | None = None
    media: _Media | None = None


_DECODER = msgspec.json.Decoder(_Message)
_encode = msgspec.json.Encoder().encode


class Telnyx:
    """How Telnyx writes it: a connection is one stream, so nothing names it."""

    name = "telnyx"

    def decode(self, message: bytes) -> CarrierMessage | None:
        """Read a message; none for ``connected``, ``error``, other tracks and what is new."""
        said = read_message(_DECODER, message)
        match said:
            case _Message(event="media", media=_Media(track="inbound") as media):
                return Sound(read_payload(media.payload), _number(media.chunk))
            case _Message(event="start", start=_Start() as start):
                form = start.media_format
                known = _FORMATS.get((form.encoding, form.sample_rate))
                if known is None:
                    raise unsupported_format(
                        form.encoding, "set stream_codec and stream_bidirectional_codec to PCMU"
                    )
                parameters = start.custom_parameters or {}
                return CallStarted(said.stream_id, start.call_control_id, known, parameters)
            case _:
                return common_meaning(said)

    def sound(self, stream_id: str, payload: bytes) -> bytes:
        """Write sound."""
        return _encode({"event": "media", "media": {"payload": write_payload(payload)}})

    def mark(self, stream_id: str, name: str) -> bytes:
        """Write a mark."""
        return _encode({"event": "mark", "mark": {"name": name}})

    def clear(self, stream_id: str) -> bytes:
        """Write what forgets."""
        return _encode({"event": "clear"})


def _number(chunk: str | int | None) -> int | None:
    """The place of a frame, which is written as text."""
    text = str(chunk)
    return int(text) if text.isdecimal() and text.isascii() and len(text) < 12 else None
