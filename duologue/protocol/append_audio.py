"""The one command that comes many times a second: audio from the microphone.

Apart from the other commands, since dialects add to it. This module must not know what is done
with the audio.
"""

from __future__ import annotations

import msgspec

from duologue.protocol.audio_formats import AudioFormat


class AppendAudio(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    gc=False,
    tag="input_audio_buffer.append",
):
    """Audio from the microphone, in arrival order and in the negotiated input format.

    Any chunking will do: a sample that is split between two messages is put together again.
    """

    event_id: str | None = None
    audio: bytes
    """Base64 in JSON, with padding, without whitespace."""


class AppendPlacedAudio(
    AppendAudio, frozen=True, kw_only=True, omit_defaults=True, tag="input_audio_buffer.append"
):
    """Audio from the microphone that says what it is, and where it belongs.

    What the server has already is dropped, so that audio may be sent again after a connection was
    lost; what is missing is heard as silence, up to a limit.
    """

    start_sample: int | None = None
    """Place of the first sample on the client's own count, at the rate of the wire. From the first
    append that has one, ``input_audio_buffer.accepted`` says how far the server has the audio."""

    declared: AudioFormat | None = None
    """What the client says the bytes are, from ``format`` and ``sample_rate_hz``. Must be what the
    session listens for."""
