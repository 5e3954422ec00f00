"""What a client is told when its session outlives a connection.

This module must not know when that is, nor what is kept for it.
"""

from __future__ import annotations

from collections.abc import Mapping

from duologue.core.audio import samples_to_ms
from duologue.core.errors import ProtocolError
from duologue.protocol.duplex.events import (
    PlaybackPosition,
    ResyncRequired,
    SessionReplaced,
    SessionResumed,
    SessionSnapshot,
)
from duologue.protocol.duplex.session_resource import DuplexSessionResource
from duologue.protocol.errors import ErrorCode, refused
from duologue.protocol.events import ResumableSessionCreated, SessionCreated
from duologue.protocol.session_config import AnySession
from duologue.sessions.history.history import History
from duologue.sessions.history.inheritance import Inheritance
from duologue.sessions.resumption.journal import Gap
from duologue.sessions.speaking.speaking import Speaking


def created(
    resource: AnySession,
    resume_token: str | None,
    generation: int,
    inherited: Inheritance | None = None,
) -> SessionCreated:
    """Return the greeting of a connection."""
    if resume_token is None:
        return SessionCreated(session=resource)
    return ResumableSessionCreated(
        session=resource,
        resume_token=resume_token,
        attachment_generation=generation,
        continues=None if inherited is None else inherited.session_id,
        next_sample=None if inherited is None else inherited.next_sample,
        last_event_id=None if inherited is None else inherited.last_event_id,
    )


def resumed(
    resource: AnySession,
    resume_token: str,
    generation: int,
    next_sample: int,
    last_event_id: str | None,
) -> SessionResumed:
    """Return the greeting of a connection that goes on with a session."""
    assert isinstance(resource, DuplexSessionResource)
    return SessionResumed(
        session_id=resource.id,
        session=resource,
        attachment_generation=generation,
        resume_token=resume_token,
        next_sample=next_sample,
        last_event_id=last_event_id,
    )


def replaced(session_id: str, generation: int) -> SessionReplaced:
    """Return the last words to a connection that another one has replaced."""
    return SessionReplaced(session_id=session_id, attachment_generation=generation)


def resync(
    resource: AnySession,
    gap: Gap,
    history: History,
    speaking: Speaking,
    seq: int,
    now: float,
    following_s: Mapping[str, float],
) -> ResyncRequired:
    """Return how a session stands, for a client that has missed too much.

    Args:
        seq: The number of the latest event.
        following_s: Of what was sent already, the sound that is sent again after this, by item.
    """
    assert isinstance(resource, DuplexSessionResource)
    rate_hz = speaking.rate_hz

    def again(item_id: str) -> int:
        return round(following_s.get(item_id, 0.0) * rate_hz)

    active = speaking.active
    return ResyncRequired(
        session_id=resource.id,
        reason="sound_gap" if gap is Gap.SOUND else "journal_gap",
        snapshot=SessionSnapshot(
            session=resource,
            items=tuple(history.items()),
            playback=tuple(
                PlaybackPosition(
                    item_id=item_id,
                    sent_ms=samples_to_ms(sent - again(item_id), rate_hz),
                    heard_ms=samples_to_ms(heard, rate_hz),
                )
                for item_id, sent, heard in speaking.playback.positions(now)
            ),
            active_response_id=None if active is None else active.id,
            server_event_seq=seq,
        ),
    )


def too_old() -> ProtocolError:
    """Return the refusal of another answer, of a session that ends for its age."""
    return refused(
        "the session has reached its maximum duration and ends; "
        "open a new one and put the conversation's items into it",
        None,
        ErrorCode.SESSION_EXPIRED,
    )
