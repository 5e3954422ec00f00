"""Whether speech over an answer interrupts it: one pure decision.

This module must not know how speech is detected or what an interruption does.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class OverlapDecision(Enum):
    """What to do about the person's speech right now."""

    NO_OVERLAP = "no_overlap"
    """Nobody else is talking: the turn is simply a turn."""

    WAIT = "wait"
    """Too short to tell; ask again when there is more of it."""

    INTERRUPT = "interrupt"
    """Confirmed: the answer stops."""

    TALK_OVER = "talk_over"
    """Interruptions are switched off: both talk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlap:
    """What is known when the decision is due.

    Args:
        answering: A response of the default conversation is active, or its playback goes on.
        audible: At least one sample of it was heard.
        speech_ms: Speech in this turn so far, without pauses.
        interrupts: The session's ``interrupt_response``.
        min_interruption_ms: Speech that confirms an interruption of an audible answer.
    """

    answering: bool
    audible: bool
    speech_ms: int
    interrupts: bool
    min_interruption_ms: int


def decide(overlap: Overlap) -> OverlapDecision:
    """Decide what speech over an answer does.

    An answer that nobody has heard yet is withdrawn at the first speech: the person goes on
    with what they were saying. One that is being heard stops only for speech that is longer
    than a "mm-hm".
    """
    if not overlap.answering:
        return OverlapDecision.NO_OVERLAP
    if not overlap.interrupts:
        return OverlapDecision.TALK_OVER
    if not overlap.audible or overlap.speech_ms >= overlap.min_interruption_ms:
        return OverlapDecision.INTERRUPT
    return OverlapDecision.WAIT
