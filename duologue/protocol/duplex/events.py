"""What the server may say in the duplex dialect besides the events of the Realtime API.

They reach only connections that asked for them. This module must not know when an event is due.
"""

from __future__ import annotations

from typing import ClassVar, Literal, TypeAlias

import msgspec

from duologue.protocol.duplex.config import OverlapPolicy
from duologue.protocol.duplex.session_resource import DuplexSessionResource
from duologue.protocol.items import Item
from duologue.protocol.on_interruption import OnInterruption

TurnState: TypeAlias = Literal["idle", "user_speaking", "assistant_speaking", "both_speaking"]


class HeartbeatAcknowledged(msgspec.Struct, frozen=True, kw_only=True, tag="session.heartbeat_ack"):
    """The server is still there, too."""

    on_interruption: ClassVar[OnInterruption] = OnInterruption.MUST_DELIVER

    session_id: str
    next_sample: int
    """As in ``input_audio_buffer.accepted``; 0 before the first append that has a position."""


class InputAccepted(msgspec.Struct, frozen=True, kw_only=True, tag="input_audio_buffer.accepted"):
    """The server has the person's audio up to here; the client need not keep it.

    Sent about once for each second of audio, to a client whose appends carry ``start_sample``.
    """

    on_interruption: ClassVar[OnInterruption] = OnInterruption.DROPPABLE

    next_sample: int
    """The first sample that the server does not have, on the client's own count."""

    missing_samples: int
    """How many of those before it never came and were heard as silence, since the beginning."""


class PlaybackCursor(msgspec.Struct, frozen=True, kw_only=True):
    """The clocks of one answer's audio, in milliseconds from its beginning."""

    generated_ms: int
    """Made by the model."""

    sent_ms: int
    """Handed to the connection."""

    played_ms: int
    """Heard by the person, as well as is known."""

    committed_ms: int
    """In the conversation."""


class AcknowledgedPosition(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a ``playback.ack``."""

    session_id: str
    epoch: int
    """How many times answers of this session were cut off so far."""

    response_id: str
    item_id: str
    played_ms: int
    committed_ms: int
    truncate: bool
    playback: PlaybackCursor
    history_committed: bool
    """All of the answer is in the conversation."""


class PlaybackAcknowledged(msgspec.Struct, frozen=True, kw_only=True, tag="playback.acknowledged"):
    """A ``playback.ack`` was taken in."""

    on_interruption: ClassVar[OnInterruption] = OnInterruption.MUST_DELIVER

    event: AcknowledgedPosition


class ResponseSpeak(msgspec.Struct, frozen=True, kw_only=True, tag="response.speak"):
    """The model has decided to speak: output follows."""

    on_interruption: ClassVar[OnInterruption] = OnInterruption.MUST_DELIVER

    response_id: str
    item_id: str
    output_index: int
    content_index: int


class Listening(msgspec.Struct, frozen=True, kw_only=True):
    """A decision not to speak."""

    status: Literal["listening"] = "listening"
    reason: str
    """``model_decision``, ``silence_or_noise``, ``model_decides_turns``."""


class ResponseListen(msgspec.Struct, frozen=True, kw_only=True, tag="response.listen"):
    """Nothing is said for now, and the conversation goes on."""

    on_interruption: ClassVar[OnInterruption] = OnInterruption.MUST_DELIVER

    session_id: str
    epoch: int
    response: Listening


class ContextShortened(msgspec.Struct, frozen=True, kw_only=True, tag="session.context_shortened"):
    """The model remembers less of the call than it could, since the server's memory is short.

    The call goes on. What was said before is forgotten by the model, not by the conversation.
    """

    on_interruption: ClassVar[OnInterruption] = OnInterruption.MUST_DELIVER

    session_id: str
    epoch: int
    context_ms: int
    """How far back the model remembers now."""


class OverlapMeasured(msgspec.Struct, frozen=True, kw_only=True):
    """What an overlap decision was made from."""

    overlap_speech_ms: int
    """Speech over the answer so far, without pauses."""


class OverlapDecided(msgspec.Struct, frozen=True, kw_only=True, tag="overlap.decision"):
    """The person spoke over the answer, and this is what it means."""

    on_interruption: ClassVar[OnInterruption] = OnInterruption.MUST_DELIVER

    session_id: str
    epoch: int
    policy: OverlapPolicy
    action: Literal["barge_in", "listen", "drop"]
    """The answer stops; both talk; it was no turn."""

    reason: str
    """``speech``, ``unheard_answer``, ``client_barge_in``, ``policy_listen_only`` or
    ``short_ack``."""

    metadata: OverlapMeasured


class TurnEvent(msgspec.Struct, frozen=True, kw_only=True, tag="turn.event"):
    """The floor changed hands, or may soon."""

    on_interruption: ClassVar[OnInterruption] = OnInterruption.MUST_DELIVER

    session_id: str
    event: Literal[
        "user_started", "user_pausing", "user_resumed", "user_committed", "user_abandoned"
    ]
    turn_state: TurnState
    epoch: int


class SessionClosed(msgspec.Struct, frozen=True, kw_only=True, tag="session.closed"):
    """The client closed the session. The last event; then the connection is closed with 1000."""

    on_interruption: ClassVar[OnInterruption] = OnInterruption.MUST_DELIVER

    session_id: str
    reason: str
    """The client's own."""


class SessionExpired(msgspec.Struct, frozen=True, kw_only=True, tag="session.expired"):
    """The server ends the session. The last event before the connection is closed."""

    on_interruption: ClassVar[OnInterruption] = OnInterruption.MUST_DELIVER

    session_id: str
    reason: str
    """A code of the table of errors."""

    rollover: Literal["new_session"] | None = None
    """How the conversation may go on: in a new session. ``session.resume`` with the id and the
    token of this one opens it, for a while, with the same configuration and items."""


class SessionQueued(msgspec.Struct, frozen=True, kw_only=True, tag="session.queued"):
    """All places are taken, and this call waits for one: ``session.created`` comes when it has it.

    Sent before there is a session, to clients of every dialect that connect with ``?queue=1``, and
    again whenever the position changes. It has no number.
    """

    on_interruption: ClassVar[OnInterruption] = OnInterruption.DROPPABLE

    position: int
    """Place in the queue; 1 is the next."""

    waiting: int
    """How many calls wait, this one included."""


class SessionExpiring(msgspec.Struct, frozen=True, kw_only=True, tag="session.expiring"):
    """The session will soon be as old as it may be.

    At the limit no new answer begins; the one that is running may finish, for a while.
    """

    on_interruption: ClassVar[OnInterruption] = OnInterruption.MUST_DELIVER

    session_id: str
    seconds_left: int
    """Until the limit."""

    rollover: Literal["new_session"] = "new_session"
    """How the conversation may go on, see ``session.expired``."""


class SessionResumed(msgspec.Struct, frozen=True, kw_only=True, tag="session.resumed"):
    """This connection now carries the session; what was missed follows, with its old numbers.

    It has no number itself. A number that is missing in what follows was sound that an
    interruption has taken back meanwhile.
    """

    on_interruption: ClassVar[OnInterruption] = OnInterruption.MUST_DELIVER

    session_id: str
    session: DuplexSessionResource
    attachment_generation: int
    """Grows by one with every connection of the session."""

    resume_token: str
    """For the next time; the one that was used is void."""

    next_sample: int
    """Audio from this sample on must be sent again, see ``input_audio_buffer.accepted``. What the
    server has already is left out, to the sample."""

    last_event_id: str | None = None
    """The ``event_id`` of the latest message that had one, of all that the session got after it was
    opened: what was sent later, on whichever connection, never came."""


class SessionReplaced(msgspec.Struct, frozen=True, kw_only=True, tag="session.replaced"):
    """Another connection has taken the session over. The last event of this one."""

    on_interruption: ClassVar[OnInterruption] = OnInterruption.MUST_DELIVER

    session_id: str
    attachment_generation: int


class PlaybackPosition(msgspec.Struct, frozen=True, kw_only=True):
    """How far the sound of an item is."""

    item_id: str
    sent_ms: int
    """The next sound of it begins there. What is missing until there never comes."""

    heard_ms: int
    """As well as is known."""


class SessionSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """How a session stands at one moment."""

    session: DuplexSessionResource
    items: tuple[Item, ...]
    """The conversation, in order."""

    playback: tuple[PlaybackPosition, ...]
    """Of the items that were spoken lately."""

    active_response_id: str | None
    """The response that is being said."""

    server_event_seq: int
    """The latest event that this takes the place of."""


class ResyncRequired(msgspec.Struct, frozen=True, kw_only=True, tag="session.resync_required"):
    """Events were lost for good, and this is how things stand. The session goes on.

    It has no number.
    """

    on_interruption: ClassVar[OnInterruption] = OnInterruption.MUST_DELIVER

    session_id: str
    reason: Literal["journal_gap", "sound_gap"]
    """``journal_gap``: what was missed does not follow, the snapshot takes its place.
    ``sound_gap``: only sound is missing, and everything else follows."""

    snapshot: SessionSnapshot


class FrameAcknowledged(msgspec.Struct, frozen=True, kw_only=True, tag="video.frame.ack"):
    """A ``video.frame`` waits for the next turn."""

    on_interruption: ClassVar[OnInterruption] = OnInterruption.DROPPABLE

    frame_id: str
    buffered_frames: int
    """How many wait now, this one included."""

    dropped_frame_ids: tuple[str, ...] = ()
    """Those that gave way to it."""


class FramesConsumed(msgspec.Struct, frozen=True, kw_only=True, tag="video.frames.consumed"):
    """A turn of the person was given frames: pictures at the end of its item."""

    on_interruption: ClassVar[OnInterruption] = OnInterruption.MUST_DELIVER

    item_id: str
    frames: int
    frame_ids: tuple[str, ...]
    """Of those that have one, oldest first."""


DuplexEvent: TypeAlias = (
    HeartbeatAcknowledged
    | InputAccepted
    | PlaybackAcknowledged
    | ResponseSpeak
    | ResponseListen
    | ContextShortened
    | OverlapDecided
    | TurnEvent
    | SessionClosed
    | SessionExpired
    | SessionExpiring
    | SessionQueued
    | SessionResumed
    | SessionReplaced
    | ResyncRequired
    | FrameAcknowledged
    | FramesConsumed
)
