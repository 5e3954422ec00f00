"""What a session looks like from outside: numbers and states, and nothing that was said.

This module must not change a session.
"""

from __future__ import annotations

import msgspec

from duologue.engines.frame_counts import FrameCounts
from duologue.sessions.session import Session
from duologue.sessions.speaking.speaking import Speaking


class SessionLook(msgspec.Struct, frozen=True, kw_only=True):
    """One session at one moment.

    Args:
        state: ``idle``, ``person_speaking``, ``answering``, ``overlap`` (both), or why it ended.
        attached: A connection takes its output.
        waiting_ms: Speech in the output buffer.
        unplayed_ms: Speech that was sent and is still to be heard, by our estimate.
        waiting_bytes: All that waits for the client.
        heard_ms: Position on the clock of the person's audio.
        requests: To the engine, that work for it.
        stale_dropped: Outputs that came too late.
        stream: What became of the frames of a model that hears and speaks at every tick.
    """

    id: str
    model: str
    transport: str
    dialect: str
    key: str
    age_s: float
    state: str
    attached: bool
    responses: int
    items: int
    requests: int
    waiting_ms: int
    waiting_bytes: int
    unplayed_ms: int
    heard_ms: int
    stale_dropped: int
    stream: FrameCounts | None = None


def unplayed_s(speaking: Speaking, now: float) -> float:
    """Return how much speech was made and is still to be heard, by our estimate."""
    return speaking.buffer.speech_ms / 1000 + speaking.playback.lead_s(now)


def look_at(session: Session, now: float) -> SessionLook:
    """Take a look."""
    machine = session.machine
    speaking = machine.speaking
    return SessionLook(
        id=session.id,
        model=machine.model,
        transport=session.via.transport,
        dialect=session.via.dialect,
        key=session.owner.name,
        age_s=round(now - session.opened_at, 1),
        state=machine.ended or _state(session),
        attached=session.attached,
        responses=len(speaking),
        items=len(machine.history),
        requests=machine.requests.running,
        waiting_ms=speaking.buffer.speech_ms,
        waiting_bytes=speaking.buffer.held_bytes,
        unplayed_ms=round(speaking.playback.lead_s(now) * 1000),
        heard_ms=machine.listening.audio_ms(),
        stale_dropped=machine.requests.stale_dropped,
        stream=machine.stream,
    )


def _state(session: Session) -> str:
    speaks = session.machine.listening.turn is not None
    if session.machine.speaking.active is not None:
        return "overlap" if speaks else "answering"
    return "person_speaking" if speaks else "idle"
