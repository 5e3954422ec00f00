"""The messages of ``/v1/audio/speech/stream``: text in as it is written, speech out as it is made.

Everything is JSON, but speech, which is binary unless the client asks for base64. This module must
not know how text becomes speech.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

import msgspec

from duologue.core.errors import ProtocolError
from duologue.protocol.errors import ErrorCode, refused
from duologue.protocol.events import ErrorBody
from duologue.protocol.json_integers import refuse_wide_integers
from duologue.protocol.json_refusals import refusal


class ConfigureSpeech(msgspec.Struct, frozen=True, kw_only=True, tag="session.config"):
    """How to speak from the next utterance on; what is not named stays as it is.

    Args:
        audio: How speech is sent: ``binary`` messages, or ``audio.chunk`` events with base64.
    """

    event_id: str | None = None
    model: str | None = None
    voice: str | None = None
    response_format: str | None = None
    speed: float | None = None
    instructions: str | None = None
    audio: Literal["binary", "base64"] | None = None


class AppendText(msgspec.Struct, frozen=True, kw_only=True, tag="input.text"):
    """More text. The first one begins an utterance."""

    event_id: str | None = None
    text: str


class FlushText(msgspec.Struct, frozen=True, kw_only=True, tag="input.flush"):
    """Say what has come, though it may be in the middle of a clause; the utterance goes on."""

    event_id: str | None = None


class FinishText(msgspec.Struct, frozen=True, kw_only=True, tag="input.done"):
    """The utterance has all its text; the next text begins another one."""

    event_id: str | None = None


class CancelSpeech(msgspec.Struct, frozen=True, kw_only=True, tag="input.cancel"):
    """Be silent: all utterances that are not over end now."""

    event_id: str | None = None


class CloseSpeech(msgspec.Struct, frozen=True, kw_only=True, tag="session.close"):
    """Say what there is to say, then end the connection."""

    event_id: str | None = None


SpeechCommand: TypeAlias = (
    ConfigureSpeech | AppendText | FlushText | FinishText | CancelSpeech | CloseSpeech
)


class SpeechSettingsShown(msgspec.Struct, frozen=True, kw_only=True):
    """What is in force."""

    model: str
    voice: str
    response_format: str
    speed: float
    audio: str
    sample_rate: int


class SpeechSessionCreated(msgspec.Struct, frozen=True, kw_only=True, tag="session.created"):
    """The first event."""

    session: SpeechSettingsShown


class SpeechSessionUpdated(msgspec.Struct, frozen=True, kw_only=True, tag="session.updated"):
    """The answer to ``session.config``."""

    session: SpeechSettingsShown


class AudioStart(msgspec.Struct, frozen=True, kw_only=True, tag="audio.start"):
    """The speech of an utterance follows, as one file of this format.

    Args:
        utterance: Counted from 0.
    """

    utterance: int
    response_format: str
    sample_rate: int


class AudioChunkEvent(msgspec.Struct, frozen=True, kw_only=True, tag="audio.chunk"):
    """A piece of the file, where base64 was asked for."""

    utterance: int
    audio: bytes


class SpokenMark(msgspec.Struct, frozen=True, kw_only=True):
    """All text before ``text_end`` has been said when ``audio_ms`` are played.

    Args:
        text_end: In characters of the utterance's text, as it was sent.
        kind: ``clause`` is exact; a ``word`` is where the voice can tell.
    """

    text_end: int
    audio_ms: int
    kind: Literal["clause", "word"]


class AudioMarks(msgspec.Struct, frozen=True, kw_only=True, tag="audio.marks"):
    """Places in the speech that was sent before."""

    utterance: int
    marks: Sequence[SpokenMark]


class AudioDone(msgspec.Struct, frozen=True, kw_only=True, tag="audio.done"):
    """No more speech of this utterance comes.

    Args:
        text_chars: How much text came in.
        audio_ms: How much speech went out.
    """

    utterance: int
    reason: Literal["completed", "cancelled", "failed"]
    text_chars: int
    audio_ms: int


class SpeechError(msgspec.Struct, frozen=True, kw_only=True, tag="error"):
    """A message was refused, or an utterance failed. The connection stays."""

    error: ErrorBody


SpeechEvent: TypeAlias = (
    SpeechSessionCreated
    | SpeechSessionUpdated
    | AudioStart
    | AudioChunkEvent
    | AudioMarks
    | AudioDone
    | SpeechError
)

_DECODER: msgspec.json.Decoder[SpeechCommand] = msgspec.json.Decoder(SpeechCommand)


def decode_speech_command(message: bytes) -> SpeechCommand:
    """Return a client's message. Unknown fields are ignored.

    Raises:
        ProtocolError: It is none.
    """
    refuse_wide_integers(message)
    try:
        return _DECODER.decode(message)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as exc:
        raise refusal(exc, message) from None


def no_binary() -> ProtocolError:
    """Return the error for a message that is not text."""
    return refused("messages are JSON, in text; this one is binary", None, ErrorCode.INVALID_JSON)
