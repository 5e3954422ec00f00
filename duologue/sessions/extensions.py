"""What a session says beyond the Realtime API, where its client has asked for that.

Only words: nothing here changes what the session does. This module must not know commands.
"""

from __future__ import annotations

from typing import Literal

from duologue.core.fence import Epochs
from duologue.duplex_plugins.contract import TurnKind
from duologue.protocol.duplex.config import OverlapPolicy
from duologue.protocol.duplex.events import (
    ContextShortened,
    Listening,
    OverlapDecided,
    OverlapMeasured,
    ResponseListen,
    SessionClosed,
    SessionExpired,
    SessionExpiring,
    TurnEvent,
    TurnState,
)
from duologue.protocol.errors import ErrorCode
from duologue.sessions.speaking.speaking import Speaking

CLOSED = "closed"
"""Why a session ends that its client has closed."""

_TURN_EVENTS: dict[
    TurnKind,
    Literal["user_started", "user_pausing", "user_resumed", "user_committed", "user_abandoned"],
] = {
    TurnKind.STARTED: "user_started",
    TurnKind.PAUSING: "user_pausing",
    TurnKind.RESUMED: "user_resumed",
    TurnKind.COMMITTED: "user_committed",
    TurnKind.ABANDONED: "user_abandoned",
}


class Extensions:
    """The extra words of one session."""

    def __init__(self, session_id: str, speaking: Speaking, epochs: Epochs) -> None:
        self.close_reason = ""
        """The client's own, once it has closed the session."""
        self._session_id = session_id
        self._epochs = epochs
        self._speaking = speaking
        speaking.extend()

    @property
    def epoch(self) -> int:
        """How often an answer of the conversation was interrupted, cancelled or failed."""
        return self._epochs.number

    def turn(self, kind: TurnKind, now: float) -> None:
        """Say that the person's floor has changed."""
        self._speaking.emit(
            TurnEvent(
                session_id=self._session_id,
                event=_TURN_EVENTS[kind],
                turn_state=self._turn_state(kind, now),
                epoch=self.epoch,
            )
        )

    def overlap(
        self,
        action: Literal["barge_in", "listen", "drop"],
        reason: str,
        policy: OverlapPolicy,
        speech_ms: int,
    ) -> None:
        """Say what speech over an answer means."""
        self._speaking.emit(
            OverlapDecided(
                session_id=self._session_id,
                epoch=self.epoch,
                policy=policy,
                action=action,
                reason=reason,
                metadata=OverlapMeasured(overlap_speech_ms=speech_ms),
            )
        )

    def listens(self, reason: str) -> None:
        """Say that nothing is said for now."""
        self._speaking.emit(
            ResponseListen(
                session_id=self._session_id, epoch=self.epoch, response=Listening(reason=reason)
            )
        )

    def remembers(self, context_ms: int) -> None:
        """Say how far back the model remembers now."""
        self._speaking.emit(
            ContextShortened(session_id=self._session_id, epoch=self.epoch, context_ms=context_ms)
        )

    def expires_in(self, seconds: float) -> None:
        """Say that the session will be as old as it may be."""
        self._speaking.emit(
            SessionExpiring(session_id=self._session_id, seconds_left=round(seconds))
        )

    def farewell(self, reason: str) -> None:
        """Say that the session is over; after everything else, and whatever waits."""
        if reason == CLOSED:
            closed = SessionClosed(
                session_id=self._session_id, reason=self.close_reason or "server_close"
            )
            self._speaking.buffer.put(closed, always=True)
        else:
            expired = SessionExpired(
                session_id=self._session_id,
                reason=reason,
                rollover="new_session" if reason == ErrorCode.SESSION_EXPIRED else None,
            )
            self._speaking.buffer.put(expired, always=True)

    def _turn_state(self, kind: TurnKind, now: float) -> TurnState:
        user = kind in (TurnKind.STARTED, TurnKind.PAUSING, TurnKind.RESUMED)
        speaking = self._speaking
        if speaking.active is not None or speaking.playback.lead_s(now) > 0:
            return "both_speaking" if user else "assistant_speaking"
        return "user_speaking" if user else "idle"
