"""Stalled input: when a client that sends nothing more in mid-speech has ended its turn, and where.

The sound that came last may still wait to be judged: the detector's process stood still, or much
came at once. What was heard ends a turn, not the clock alone. This module must not know what
follows from the end of a turn.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from duologue.codecs.pcm import is_loud
from duologue.core.audio import samples_to_ms
from duologue.protocol.limits import MIN_COMMIT_MS
from duologue.sessions.hearing.floor import FloorEvent
from duologue.sessions.hearing.listening import Listening

LOOK_AGAIN_S = 0.25
"""How often it is looked whether a detector that lags behind has judged the rest of a turn."""


class StalledInput:
    """Watches for the end of what one client sends."""

    __slots__ = ("_limit_s", "_listening", "_look_again_at", "_patience_s", "judged_at")

    def __init__(self, listening: Listening) -> None:
        self.judged_at = -math.inf
        """When the detector last said something; whoever hears it sets it."""

        self._listening = listening
        self._limit_s = listening.settings.stalled_input_s
        self._patience_s = listening.settings.detector_timeout_s
        self._look_again_at = -math.inf

    def due_at(self, heard_at: float) -> float | None:
        """When the turn that is going on may be over; ``None``: there is none.

        Args:
            heard_at: When sound last came in.
        """
        if self._listening.turn is None:
            return None
        return max(heard_at + self._limit_s, self._look_again_at)

    def is_over(self, heard_at: float, now: float) -> bool:
        """Tell whether the turn must end now. A detector that lags behind is waited for.

        For as long as it says something now and then, that is.
        """
        due_at = self.due_at(heard_at)
        if due_at is None or now < due_at:
            return False
        if (
            now < max(heard_at, self.judged_at) + self._patience_s
            and self._listening.detector_runs
            and self._holds_unjudged()
        ):
            self._look_again_at = now + LOOK_AGAIN_S
            return False
        return True

    def end_turn(self) -> Sequence[FloorEvent]:
        """End the turn with all that may have been said.

        A detector that is gone, or hangs, has not judged the last words: they count all the same.
        """
        end_sample = self._listening.audio.next_sample if self._holds_unjudged() else None
        return self._listening.floor.force_end(end_sample)

    def _holds_unjudged(self) -> bool:
        """What came behind the detector's newest window is loud, so it may be speech."""
        audio = self._listening.audio
        unjudged = audio.read(self._listening.floor.judged_until)
        long_enough = samples_to_ms(unjudged.samples, audio.rate_hz) >= MIN_COMMIT_MS
        return long_enough and is_loud(unjudged.pcm, audio.rate_hz)
