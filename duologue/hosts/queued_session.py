"""A session that waits for a place: the port of a connection whose call may not begin yet.

Until then it answers for the session: it tells the client its place in the queue, and keeps the
little that it says. This module must not know how messages are written.
"""

from __future__ import annotations

from collections.abc import Callable

from duologue.core.clock import Clock
from duologue.core.errors import DuologueError
from duologue.core.wheel import TimerWheel
from duologue.hosts.call_queue import CallQueue
from duologue.hosts.port import Joined
from duologue.protocol.commands import AppendAudio, Command
from duologue.protocol.duplex.commands import CloseSession
from duologue.protocol.duplex.events import SessionQueued
from duologue.protocol.errors import ErrorCode, error_body, error_event, refused
from duologue.protocol.events import ErrorBody, ErrorEvent
from duologue.sessions.port import Attachment, Batch, Delivery

MAX_EARLY_COMMANDS = 16
"""What a client may say before it has its session: it is listened to afterwards."""

MAX_WAITING_ERRORS = 16
"""A client that only makes mistakes, and reads none of the answers, is let go."""

LOOK_S = 0.25
"""How often the next one looks whether there is a place. Nobody else looks."""

_CLOSED = "closed"
_NO_SESSION_YET = 0
"""Number of the events that come before there is a session."""

OpenSession = Callable[[], Joined]


class QueuedSession:
    """Stands for a session, and is replaced by it; on the wheel meanwhile.

    Args:
        open: Opens the session; raises ``CapacityError`` while there is no place.
        timeout_s: How long the client may wait.
    """

    def __init__(
        self,
        queue: CallQueue,
        open: OpenSession,
        clock: Clock,
        wheel: TimerWheel,
        timeout_s: float,
    ) -> None:
        self.id = ""
        self.offer: Callable[[Command], None] = self._offer_early
        self.reject: Callable[[ErrorBody], None] = self._refuse
        self.pull: Callable[[int], Batch] = self._pull_news
        self.played: Callable[[str, int], None] = _nothing_plays
        self.detach: Callable[[Attachment], None] = self._leave
        self._queue = queue
        self._open = open
        self._timeout_s = timeout_s
        self._attachment: Attachment | None = None
        self._position: SessionQueued | None = None
        self._errors: list[ErrorEvent] = []
        self._early: list[Command] = []
        self._clock = clock
        self._wheel = wheel
        self._late_at = clock.now() + timeout_s
        self._is_next = False
        self._over = False
        self._session: Joined | None = None
        wheel.set(self, self._late_at)

    def attach(self, attachment: Attachment) -> None:
        """Serve a connection."""
        self._attachment = attachment
        attachment.on_output()
        self._look_soon()

    def close(self, reason: str) -> None:
        """End it, before there is a session or after."""
        if self._session is not None:
            self._session.close(reason)
        else:
            self._end(reason, "gave_up")

    def on_position(self, position: int, waiting: int) -> None:
        """The queue's call."""
        self._position = SessionQueued(position=position, waiting=waiting)
        self._is_next = position == 1
        if self._attachment is not None:
            self._attachment.on_output()
        self._look_soon()

    def on_timer(self) -> None:
        """The wheel's call: it is late, or time to look whether there is a place."""
        now = self._clock.now()
        if now >= self._late_at:
            late = refused(
                f"no place became free within {self._timeout_s:g} s", None, ErrorCode.SERVER_FULL
            )
            self._refuse(error_body(late))
            self._end(ErrorCode.SERVER_FULL, "timed_out")
        elif not self._takes_place():
            self._wheel.set(self, min(now + LOOK_S, self._late_at))

    def _look_soon(self) -> None:
        """Look, once there is a connection: a place is not kept for one that never comes."""
        if self._is_next and self._attachment is not None:
            self._wheel.set(self, min(self._clock.now(), self._late_at))

    def _takes_place(self) -> bool:
        """Try to; returns whether there is nothing to wait for any more."""
        try:
            session = self._open()
        except DuologueError as exc:
            if exc.code == ErrorCode.SERVER_FULL:
                return False
            self._tell(error_event(exc))
            self._end(exc.code, "refused")
            return True
        self._become(session)
        return True

    def _become(self, session: Joined) -> None:
        self._wheel.set(self, None)
        self._session, self.id = session, session.id
        # Not its methods as they are now: it may stand for another session itself.
        self.offer = lambda command: session.offer(command)
        self.reject = lambda error: session.reject(error)
        self.pull = lambda max_bytes: session.pull(max_bytes)
        self.detach = lambda attachment: session.detach(attachment)
        self.played = lambda item_id, played_ms: session.played(item_id, played_ms)
        attachment, early = self._attachment, self._early
        assert attachment is not None, "nobody looks without a connection"
        self._attachment, self._early = None, []
        self._queue.leave(self, "admitted")
        session.attach(attachment)
        for command in early:
            session.offer(command)

    def _offer_early(self, command: Command) -> None:
        match command:
            case CloseSession():
                self._end(_CLOSED, "gave_up")
            case AppendAudio():
                raise self._too_early("audio is heard once session.created has come")
            case _ if len(self._early) >= MAX_EARLY_COMMANDS:
                raise self._too_early(f"{MAX_EARLY_COMMANDS} events wait for the session already")
            case _:
                self._early.append(command)

    def _too_early(self, why: str) -> DuologueError:
        return refused(f"this call waits for a place: {why}", "type", ErrorCode.SESSION_QUEUED)

    def _refuse(self, error: ErrorBody) -> None:
        self._tell(ErrorEvent(error=error))

    def _tell(self, event: ErrorEvent) -> None:
        self._errors.append(event)
        if len(self._errors) > MAX_WAITING_ERRORS:
            self._errors.clear()
            self._end(ErrorCode.CLIENT_TOO_SLOW, "gave_up")
        elif self._attachment is not None:
            self._attachment.on_output()

    def _pull_news(self, _max_bytes: int) -> Batch:
        position, self._position = self._position, None
        told = [Delivery(_NO_SESSION_YET, event) for event in self._errors]
        self._errors.clear()
        if position is not None:
            told.append(Delivery(_NO_SESSION_YET, position))
        return Batch(told, False)

    def _leave(self, _attachment: Attachment) -> None:
        self._attachment = None
        self._end("", "gave_up")

    def _end(self, reason: str, outcome: str) -> None:
        if self._over:
            return
        self._over = True
        attachment, self._attachment = self._attachment, None
        self.offer, self.reject = _nobody_listens, _nobody_listens
        self._wheel.set(self, None)
        self._queue.leave(self, outcome)
        if attachment is not None:
            attachment.on_end(reason)


def _nothing_plays(_item_id: str, _played_ms: int) -> None:
    """Nothing was said, so nothing was heard."""


def _nobody_listens(_said: object) -> None:
    """What a client says after the end."""
