"""How full the bounds of sessions are: what each holds, and how much it may.

Looked at when figures are asked for, so that a frame pays nothing for it. This module must not
change a session.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from duologue.sessions.session import Session
from duologue.sessions.settings import SessionSettings
from duologue.telemetry import Metrics

SESSION_BYTES = (
    "output_buffer",
    "journal",
    "input_audio",
    "input_backlog",
    "conversation",
    "camera_frames",
)
"""Bounds of a session that are counted in bytes."""

SESSION_NUMBERS = (
    "output_speech",
    "output_events",
    "input_backlog_messages",
    "mailbox",
    "conversation_items",
    "responses_beside",
)
"""Those that are counted in something else."""


AT_ONCE = 50
"""Sessions that are looked at before everybody else has a turn: a millisecond of work."""


class Fill(NamedTuple):
    """One bound of one session.

    Args:
        held: In bytes, milliseconds or pieces, as ``limit``.
    """

    bound: str
    held: int
    limit: int


def fills_of(session: Session, settings: SessionSettings) -> Iterator[Fill]:
    """Yield every bound of a session.

    Output buffer and journal share one account, where there is a journal.
    """
    machine = session.machine
    buffer = machine.speaking.buffer
    audio, history = machine.listening.audio, machine.history
    backlog, mailbox = session.inbox.backlog, session.inbox.events
    beside = sum(1 for response in machine.speaking.all() if response.out_of_band)
    yield Fill("output_buffer", buffer.held_bytes, settings.output_buffer_bytes)
    yield Fill("output_speech", buffer.longest_speech_ms(), settings.output_buffer_ms)
    yield Fill("output_events", buffer.held_events, settings.output_events)
    kept = 0 if session.journal is None else session.journal.held_bytes
    yield Fill("journal", kept, settings.output_buffer_bytes)
    yield Fill("input_audio", audio.held_bytes, audio.capacity_bytes)
    yield Fill("input_backlog", backlog.held_bytes, backlog.max_bytes)
    yield Fill("input_backlog_messages", len(backlog), backlog.capacity)
    yield Fill("mailbox", len(mailbox), mailbox.capacity)
    yield Fill("conversation", history.held_bytes, settings.max_conversation_bytes)
    frames = 0 if machine.sight is None else machine.sight.window.held_bytes
    yield Fill("camera_frames", frames, settings.frames.kept_bytes)
    yield Fill("conversation_items", len(history), settings.max_items)
    yield Fill("responses_beside", beside, settings.max_out_of_band_responses)


def note_fills(
    sessions: Sequence[Session], past_bytes: int, settings: SessionSettings, metrics: Metrics
) -> Iterator[None]:
    """Publish what all sessions hold together, and how full the fullest of them is.

    Yields after each ``AT_ONCE`` sessions, and publishes at the end.

    Args:
        past_bytes: What is kept of sessions that are over.
    """
    metrics.held_bytes["past_conversations"].set(past_bytes)
    # Where nothing may be kept, nothing is.
    metrics.bound_fill["past_conversations"].set(past_bytes / max(1, settings.rollover_bytes))
    held = dict.fromkeys(SESSION_BYTES, 0)
    fullest = dict.fromkeys((*SESSION_BYTES, *SESSION_NUMBERS), 0.0)
    for number, session in enumerate(sessions):
        if number and number % AT_ONCE == 0:
            yield
        for bound, size, limit in fills_of(session, settings):
            if bound in held:
                held[bound] += size
            fullest[bound] = max(fullest[bound], size / limit)
    metrics.journal_bytes.set(held["journal"])
    for bound, total in held.items():
        metrics.held_bytes[bound].set(total)
    for bound, share in fullest.items():
        metrics.bound_fill[bound].set(share)
