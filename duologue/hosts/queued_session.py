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
from duologue.protocol.append_audio import AppendAudio
from duologue.protocol.commands import Command
from duologue.protocol.duplex.commands import CloseSession
from duologue.protocol.duplex.events import SessionQueued
from duologue.protocol.errors import ErrorCode, error_body, error_event, refused
from duologue.protocol.events import Event
from duologue.sessions.port import Attachment, Joined
from duologue.sessions.stand_ins.stand_in import CLOSED, StandIn

MAX_EARLY_COMMANDS = 16
"""What a client may say before it has its session: it is listened to afterwards."""

LOOK_S = 0.25
"""How often the next one looks whether there is a place. Nobody else looks."""

OpenSession = Callable[[], Joined]


class QueuedSession(StandIn):
    """Becomes the session that takes the place it waits for; on the wheel meanwhile.

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
        super().__init__()
        self._queue = queue
        self._open = open
        self._timeout_s = timeout_s
        self._position: SessionQueued | None = None
        self._early: list[Command] = []
        self._clock = clock
        self._wheel = wheel
        self._late_at = clock.now() + timeout_s
        self._is_next = False
        self._outcome = "gave_up"
        wheel.set(self, self._late_at)

    def attach(self, attachment: Attachment) -> None:
        """Serve a connection, and tell it the place in the queue."""
        super().attach(attachment)
        attachment.on_output()
        self._look_soon()

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
            self.reject(error_body(late))
            self._outcome = "timed_out"
            self._end(ErrorCode.SERVER_FULL)
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
            self._outcome = "refused"
            self._end(exc.code)
            return True
        self._begin(session)
        return True

    def _begin(self, session: Joined) -> None:
        self._wheel.set(self, None)
        attachment, early = self._attachment, self._early
        assert attachment is not None, "nobody looks without a connection"
        self._early = []
        self._become(session)
        self._queue.leave(self, "admitted")
        session.attach(attachment)
        for command in early:
            session.offer(command)

    def _offer_early(self, command: Command) -> None:
        match command:
            case CloseSession():
                self._end(CLOSED)
            case AppendAudio():
                raise self._too_early("audio is heard once session.created has come")
            case _ if len(self._early) >= MAX_EARLY_COMMANDS:
                raise self._too_early(f"{MAX_EARLY_COMMANDS} events wait for the session already")
            case _:
                self._early.append(command)

    def _too_early(self, why: str) -> DuologueError:
        return refused(f"this call waits for a place: {why}", "type", ErrorCode.SESSION_QUEUED)

    def _take_news(self) -> list[Event]:
        position, self._position = self._position, None
        return [*super()._take_news(), *([] if position is None else [position])]

    def _give_up(self) -> None:
        self._wheel.set(self, None)
        self._queue.leave(self, self._outcome)
