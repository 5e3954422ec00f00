"""The body of ``POST /audio/transcriptions``, and what comes back.

This module must not know connections or jobs.
"""

from __future__ import annotations

import hashlib
import io
import wave
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from duologue.core.audio import SAMPLE_BYTES
from duologue.core.errors import EngineError

_SHOWN_BYTES = 200


class RepliedWord(msgspec.Struct):
    """A word with its time in the file, in seconds."""

    word: str
    start: float
    end: float


class Reply(msgspec.Struct):
    """What a server answers.

    Args:
        words: Where they were asked for, and the server can tell.
    """

    text: str
    words: list[RepliedWord] = []


@dataclass(frozen=True, slots=True)
class Form:
    """A multipart form, ready to be sent."""

    content_type: str
    body: bytes


def wav_file(pcm: bytes, rate_hz: int) -> bytes:
    """Return mono s16le PCM as a WAV file."""
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(SAMPLE_BYTES)
        writer.setframerate(rate_hz)
        writer.writeframes(pcm)
    return file.getvalue()


def transcription_form(wav: bytes, fields: Mapping[str, str]) -> Form:
    """Return the form that uploads ``wav`` with ``fields``."""
    # A border that nothing in it can contain: it would have to contain its own hash.
    contents = hashlib.sha256(wav)
    for value in fields.values():
        contents.update(value.encode())
    boundary = f"duologue-{contents.hexdigest()[:40]}"
    parts = [
        f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
        for name, value in fields.items()
    ]
    head = (
        f"--{boundary}\r\n"
        'Content-Disposition: form-data; name="file"; filename="speech.wav"\r\n'
        "Content-Type: audio/wav\r\n\r\n"
    )
    body = "".join((*parts, head)).encode() + wav + f"\r\n--{boundary}--\r\n".encode()
    return Form(f"multipart/form-data; boundary={boundary}", body)


def transcription_reply(answer: bytes) -> Reply:
    """Return what a server's answer says.

    Raises:
        EngineError: It is not the JSON that was asked for.
    """
    try:
        reply = msgspec.json.decode(answer, type=Reply)
        return Reply(reply.text.strip(), reply.words)
    except (msgspec.DecodeError, UnicodeDecodeError) as exc:
        shown = answer[:_SHOWN_BYTES].decode("utf-8", "replace")
        raise EngineError(
            "the server's answer is no transcription",
            code="upstream_failed",
            quote=f"{exc}: {shown}",
        ) from exc
