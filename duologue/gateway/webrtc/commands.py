"""Which commands a WebRTC call takes: its audio has been settled by the offer.

This module must not know connections.
"""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from duologue.core.errors import ClientError
from duologue.gateway.webrtc.audio_out import AUDIO_OUT_HZ
from duologue.protocol.append_audio import AppendAudio
from duologue.protocol.audio_formats import FormatPatch
from duologue.protocol.commands import Command, CreateResponse, UpdateSession
from duologue.protocol.errors import ErrorCode, refused, shown
from duologue.protocol.session_patch import SessionPatch


def check_command(command: Command, *, has_track: bool) -> None:
    """Refuse what would change how audio travels.

    Args:
        has_track: Audio is on a track, not in messages.

    Raises:
        ClientError: With the offending field.
    """
    if not has_track:
        return
    try:
        if isinstance(command, AppendAudio):
            raise refused(
                "the audio of this call is on its track; input_audio_buffer.append is for calls "
                "whose offer has none",
                "type",
                ErrorCode.UNSUPPORTED,
            )
        if isinstance(command, UpdateSession):
            check_patch(command.session)
        elif isinstance(command, CreateResponse) and command.response is not UNSET:
            audio = command.response.audio
            if audio is not UNSET and audio.output is not UNSET:
                _check_format(audio.output.format, "response.audio.output.format")
    except ClientError as exc:
        exc.event_id = command.event_id
        raise


def check_patch(patch: SessionPatch) -> None:
    """Refuse audio formats in a change of the session: the track has its own.

    Raises:
        ClientError: With the offending field.
    """
    audio = patch.audio
    if not audio:
        return
    for name, half in (("input", audio.input), ("output", audio.output)):
        if half:
            _check_format(half.format, f"session.audio.{name}.format")


def _check_format(given: FormatPatch | UnsetType | None, param: str) -> None:
    if not isinstance(given, FormatPatch):
        return
    if given.type in (UNSET, "audio/pcm") and given.rate in (UNSET, None, AUDIO_OUT_HZ):
        return
    kind = "audio/pcm" if given.type is UNSET else given.type
    raise refused(
        f"{shown(kind)} cannot be chosen here: over WebRTC the offer settles the codec, and the "
        f"session's format is audio/pcm at {AUDIO_OUT_HZ}",
        param,
        ErrorCode.UNSUPPORTED,
    )
