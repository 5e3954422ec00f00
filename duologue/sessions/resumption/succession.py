"""What is left of a session that ends, for another one to go on with.

This module must not know connections, nor for how long it is kept.
"""

from __future__ import annotations

from duologue.sessions.history.inheritance import Inheritance
from duologue.sessions.session import Session


def left_by(session: Session) -> Inheritance:
    """Return what a session leaves behind."""
    machine = session.machine
    return Inheritance(
        session_id=machine.id,
        model=machine.model,
        config=machine.config,
        items=machine.history.carried(),
        next_sample=machine.extras.next_sample(),
        last_event_id=session.last_event_id,
        unanswered=machine.owes_answer,
        edge_plays=session.edge_plays,
    )
