"""What a client of the duplex dialect may say besides the commands of the Realtime API.

Its other messages are Realtime commands under another name; the dialect translates them. This
module must not know what a command leads to.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from duologue.protocol.append_audio import AppendPlacedAudio


class CommitTurn(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="input_audio_buffer.commit"
):
    """The person has finished: make a user message of the buffered audio.

    Where the server finds turns by itself and nobody has spoken since the last one, there is
    nothing to commit and nothing wrong: ``response.listen`` answers. Also called ``input.commit``.
    """

    event_id: str | None = None
    response_create: bool | None = None
    """Whether an answer follows; absent: as the session's ``auto_response``, and yes for
    ``input.commit``. Also called ``create_response``."""

    final: bool = True
    """Only true: a commit ends the turn."""


class AcknowledgeEvents(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="session.event_ack"
):
    """Everything up to an event has been received. Not answered, unless the number is wrong."""

    event_id: str | None = None
    server_event_seq: int
    """Of the latest event received."""


class AcknowledgePlayback(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="playback.ack"
):
    """How much of an answer has been played; ``playback.acknowledged`` answers.

    Replaces the server's estimate. Values only grow, unless ``truncate`` makes one a cut: cuts only
    shrink. Also called ``audio.playback_ack``.
    """

    event_id: str | None = None
    played_ms: float
    """From the beginning of the answer's audio; clamped to what was sent."""

    committed_ms: float | None = None
    """How much of that belongs into the conversation; absent: all of it."""

    response_id: str | None = None
    """Absent: the answer of ``item_id``, else the one that is being said, or was said last."""

    item_id: str | None = None
    """The answer's item; ``item_<response_id>`` is understood, too."""

    truncate: bool = False
    """Playback has stopped there for good."""


class Heartbeat(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="session.heartbeat"
):
    """The client is still there; ``session.heartbeat_ack`` answers."""

    event_id: str | None = None


class CloseSession(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="session.close"
):
    """End the session; ``session.closed`` is the last event. Also ``close``, ``close_session``."""

    event_id: str | None = None
    reason: str = "client_close"
    """Repeated in ``session.closed``."""


class BargeIn(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="barge_in"):
    """The person interrupts: stop the answer, and what is still being played of earlier ones.

    Uncommitted audio is kept: it is what the person interrupts with.
    """

    event_id: str | None = None


class ResumeSession(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="session.resume"
):
    """Go on with a session on a new connection; must be the first message on it."""

    event_id: str | None = None
    session_id: str
    resume_token: str
    """From ``session.created`` or the latest ``session.resumed``; each is good once."""

    last_received_server_event_seq: int = 0
    """What came after it is sent again."""


class ShowFrame(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="video.frame"):
    """What the camera shows now, for a model that sees.

    Frames wait for the person's next turn, which is given the newest, the oldest, and others at
    even distances between. Of frames that come faster than they are kept the newest wins.
    """

    event_id: str | None = None
    data: bytes
    """A JPEG, PNG or WebP file, in base64."""

    frame_id: str | None = None
    """Repeated in ``video.frame.ack``, which comes for frames that have one."""


DuplexCommand: TypeAlias = (
    AppendPlacedAudio
    | CommitTurn
    | AcknowledgeEvents
    | AcknowledgePlayback
    | Heartbeat
    | CloseSession
    | BargeIn
    | ResumeSession
    | ShowFrame
)
