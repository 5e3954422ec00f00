"""Messages of the duplex dialect as they stand on the wire, and what they mean.

Most are Realtime commands under another name. This module must not know JSON or MessagePack.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

import msgspec

from duologue.protocol.append_audio import AppendAudio, AppendPlacedAudio
from duologue.protocol.audio_formats import AudioFormat, FormatPatch, PcmFormat
from duologue.protocol.commands import ClearAudio, CreateItem
from duologue.protocol.config_checks import merge_format
from duologue.protocol.duplex.commands import BargeIn, CommitTurn
from duologue.protocol.duplex.session_fields import FormatObject, format_type
from duologue.protocol.errors import ErrorCode, refused
from duologue.protocol.items import InputText, MessageItem
from duologue.protocol.json_integers import Int64

ALIASES: Mapping[str, str] = MappingProxyType(
    {
        "input.commit": "input_audio_buffer.commit",
        "audio.playback_ack": "playback.ack",
        "close": "session.close",
        "close_session": "session.close",
        "input_text.append": "input.text.append",
        "push_text": "input.text.append",
        "signal_turn": "turn.signal",
    }
)
"""Other names of messages."""

SIGNALLED = frozenset(
    {
        "barge_in",
        "input.cancel",
        "response.cancel",
        "session.update",
        "conversation.item.create",
        "conversation.item.delete",
        "conversation.item.retrieve",
        "conversation.item.truncate",
        "playback.ack",
    }
)
"""Messages that may come as the ``event`` of a ``turn.signal``, their fields as its ``payload``."""


class CommitFields(msgspec.Struct, frozen=True, kw_only=True, tag="input_audio_buffer.commit"):
    """A commit, with both names of its choice."""

    event_id: str | None = None
    response_create: bool | None = None
    create_response: bool | None = None
    final: bool = True

    def command(self) -> CommitTurn:
        """Return the command.

        Raises:
            ProtocolError: It does not end the turn.
        """
        if not self.final:
            raise refused("final is false: a commit always ends the turn", "final")
        chosen = self.response_create
        if chosen is None:
            chosen = self.create_response
        return CommitTurn(event_id=self.event_id, response_create=chosen)


class TextFields(msgspec.Struct, frozen=True, kw_only=True, tag="input.text.append"):
    """Something said in writing: a user message. No response starts by itself."""

    event_id: str | None = None
    text: str

    def command(self) -> CreateItem:
        """Return the command."""
        item = MessageItem(role="user", content=(InputText(text=self.text),))
        return CreateItem(event_id=self.event_id, item=item)


class CancelInputFields(msgspec.Struct, frozen=True, kw_only=True, tag="input.cancel"):
    """Forget the uncommitted audio."""

    event_id: str | None = None

    def command(self) -> ClearAudio:
        """Return the command."""
        return ClearAudio(event_id=self.event_id)


class SignalFields(msgspec.Struct, frozen=True, kw_only=True, tag="turn.signal"):
    """A turn event that the client has found by itself, or another message in its envelope."""

    event_id: str | None = None
    event: str
    payload: dict[str, Any] = {}

    def command(self) -> BargeIn | CommitTurn:
        """Return the command of a signal that is no message in an envelope.

        Raises:
            ProtocolError: There is no such signal.
        """
        if self.event == "user_started":
            return BargeIn(event_id=self.event_id)
        if self.event == "user_committed":
            return CommitTurn(event_id=self.event_id)
        known = ", ".join(("user_started", "user_committed", *sorted(SIGNALLED)))
        raise refused(f"there is no signal of this name; there are {known}", "event")

    def message(self) -> dict[str, Any]:
        """Return the message that is inside."""
        inside = self.payload | {"type": self.event}
        return inside if self.event_id is None else inside | {"event_id": self.event_id}


Translated: TypeAlias = CommitFields | TextFields | CancelInputFields | SignalFields
"""What ``command`` turns into a command."""


class AppendHints(msgspec.Struct, frozen=True, kw_only=True, tag="input_audio_buffer.append"):
    """Everything of an append but its audio. Hints that are not listed have no effect."""

    event_id: str | None = None
    format: str | FormatObject | None = None
    input_audio_format: str | FormatObject | None = None
    sample_rate_hz: int | None = None
    sample_rate: int | None = None
    start_sample: Int64 | None = None
    video_frames: list[msgspec.Raw] | None = None


def placed_audio(hints: AppendHints, audio: bytes) -> AppendAudio:
    """Return the command of an append; a plain one, if it says nothing of itself.

    Raises:
        ProtocolError: A hint is wrong, or there are pictures.
    """
    if hints.video_frames:
        raise refused(
            "video_frames: pictures are not taken with audio; send each as a video.frame, or put "
            "them into an item of the conversation",
            "video_frames",
            ErrorCode.UNSUPPORTED,
        )
    if hints.start_sample is not None and hints.start_sample < 0:
        raise refused(f"start_sample is {hints.start_sample}, allowed is 0 or more", "start_sample")
    named = hints.format or hints.input_audio_format
    rate = hints.sample_rate_hz or hints.sample_rate
    if hints.start_sample is None and named is None:
        return AppendAudio(event_id=hints.event_id, audio=audio)
    return AppendPlacedAudio(
        event_id=hints.event_id,
        audio=audio,
        start_sample=hints.start_sample,
        declared=None if named is None else _declared(named, rate),
    )


@functools.lru_cache(maxsize=256)
def _declared(named: str | FormatObject, rate: int | None) -> AudioFormat | None:
    """What a client says that its bytes are; None where it does not say the rate of PCM."""
    if isinstance(named, FormatObject):
        rate = named.rate or named.sample_rate_hz or named.sample_rate or rate
        named = named.type or named.format or "pcm16"
    kind = format_type(named, "format")
    if rate is None and kind in ("audio/pcm", "audio/pcm_f32le"):
        return None
    return merge_format(PcmFormat(), FormatPatch(type=kind, rate=rate), "format")
