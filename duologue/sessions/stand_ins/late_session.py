"""A session that its client opens: the port of a connection whose first message describes it.

Until then it answers for the session: what is no description is refused, and one that does not come
in time ends the connection. This module must not know how messages are written.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from duologue.core.clock import Clock
from duologue.core.errors import CapacityError, ClientError
from duologue.core.wheel import TimerWheel
from duologue.protocol.commands import Command, UpdateSession
from duologue.protocol.duplex.commands import CloseSession, ResumeSession
from duologue.protocol.errors import ErrorCode, error_body, error_event, refused
from duologue.protocol.session_patch import SessionPatch
from duologue.sessions.port import Joined
from duologue.sessions.resumption.ticket import Ticket
from duologue.sessions.stand_ins.stand_in import CLOSED, StandIn

OpenSession = Callable[[SessionPatch], Joined]


@dataclass(frozen=True, slots=True)
class Place:
    """What a session that is yet to come holds in the house.

    Args:
        open: Opens the session. Raises ``ClientError`` where the description is refused, and
            ``CapacityError`` where there is no room any more.
        resume: Checks whether a client may go on with a session that there is. Raises
            ``ClientError`` where it may not.
        keep: Takes the place again, right after a description that was refused.
        give_up: Gives the place to the session, or back.
        kept: There is a place. Without one, a client may still resume.
    """

    open: OpenSession
    resume: Callable[[ResumeSession], Ticket]
    keep: Callable[[], None]
    give_up: Callable[[], None]
    kept: bool = True


class LateSession(StandIn):
    """Becomes the session that the client's first message describes.

    Args:
        timeout_s: How long the client has to describe the session.
    """

    def __init__(self, place: Place, clock: Clock, wheel: TimerWheel, timeout_s: float) -> None:
        super().__init__()
        self._place = place
        self._wheel = wheel
        self._timeout_s = timeout_s
        self._keeps_place = place.kept
        wheel.set(self, clock.now() + timeout_s)

    def on_timer(self) -> None:
        """The wheel's call: the description has not come in time."""
        self.reject(
            error_body(
                refused(
                    f"the first session.update has not come within {self._timeout_s:g} s",
                    None,
                    ErrorCode.CONFIG_TIMEOUT,
                )
            )
        )
        self._end(ErrorCode.CONFIG_TIMEOUT)

    def _offer_early(self, command: Command) -> None:
        try:
            match command:
                case UpdateSession(session=patch):
                    self._begin(patch)
                case CloseSession():
                    self._end(CLOSED)
                case ResumeSession():
                    self._resume(command)
                case _:
                    raise refused(
                        "there is no session yet: session.update comes first",
                        "type",
                        ErrorCode.INVALID_REQUEST,
                    )
        except ClientError as exc:
            self._tell(error_event(exc, command.event_id))
        except CapacityError as exc:
            self._tell(error_event(exc, command.event_id))
            self._end(exc.code)

    def _resume(self, command: ResumeSession) -> None:
        attachment = self._attachment
        assert attachment is not None, "somebody said it"
        ticket = self._place.resume(command)
        # A session that has to be opened takes the place that was kept for it.
        self._give_up_place()
        # First, since the session speaks as soon as it is taken over.
        self._become(ticket.begin())
        try:
            ticket.use(attachment)
        except ClientError:
            self._step_back(attachment)
            raise
        self._wheel.set(self, None)

    def _begin(self, patch: SessionPatch) -> None:
        attachment = self._attachment
        if not self._keeps_place:
            self._place.keep()  # there may be room by now
            self._keeps_place = True
        # The session takes the place that was kept for it.
        self._give_up_place()
        try:
            session = self._place.open(patch)
        except ClientError:
            self._place.keep()
            self._keeps_place = True
            raise
        self._wheel.set(self, None)
        self._become(session)
        if attachment is not None:
            session.attach(attachment)

    def _give_up(self) -> None:
        self._wheel.set(self, None)
        self._give_up_place()

    def _give_up_place(self) -> None:
        if self._keeps_place:
            self._keeps_place = False
            self._place.give_up()
