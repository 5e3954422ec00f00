"""The soft pause: an answer is held at the first sign of an overlap, and goes on if it was none.

This module must not know how an overlap is decided, only that it is not decided yet.
"""

from __future__ import annotations

from duologue.sessions.hearing.floor import FloorState
from duologue.sessions.hearing.listening import Listening, PersonTurn
from duologue.sessions.speaking.speaking import Speaking


class SoftPause:
    """Holds and releases the speech of one session.

    Args:
        longest_ms: How long an overlap may stay undecided before the answer goes on all the same.
    """

    def __init__(self, speaking: Speaking, listening: Listening, longest_ms: int) -> None:
        self._speaking = speaking
        self._listening = listening
        self._longest_s = longest_ms / 1000
        self._held_for: PersonTurn | None = None
        self._holding = False

    def weigh(self, answering: bool, now: float) -> None:
        """Look at the person after each window of the detector.

        Args:
            answering: A response of the conversation is going on, or its playback.
        """
        turn = self._listening.turn
        speaks = self._listening.floor.state is FloorState.SPEAKING
        if turn is None or turn.confirmed or not answering or not speaks:
            self._release()
        elif turn is not self._held_for:
            # Once for each: what goes on and off is no sign of anything any more.
            self._held_for = turn
            self._holding = True
            self._speaking.pacing.hold(now + self._longest_s)

    def _release(self) -> None:
        if self._holding:
            self._holding = False
            self._speaking.pacing.release()
