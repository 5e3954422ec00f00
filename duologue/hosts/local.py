"""The session host in the gateway's own process: calls become calls, nothing travels.

Also what a host in a process of its own does for its edges. This module must not know links.
"""

from __future__ import annotations

from duologue.core.clock import Clock
from duologue.core.errors import CapacityError, UnknownSession
from duologue.core.wheel import TimerWheel
from duologue.hosts.call_queue import CallQueue
from duologue.hosts.port import Arrival, InTurn, LateOpening, LookingOn, Opening, Return
from duologue.hosts.queued_session import QueuedSession
from duologue.protocol.commands import UpdateSession
from duologue.protocol.duplex.commands import ResumeSession
from duologue.protocol.duplex.session_patch import as_duplex
from duologue.protocol.errors import ErrorCode
from duologue.protocol.session_config import AnySession
from duologue.protocol.session_patch import SessionPatch
from duologue.sessions.manager import SessionManager
from duologue.sessions.owners import Owner
from duologue.sessions.port import Joined
from duologue.sessions.resumption.ticket import Ticket
from duologue.sessions.stand_ins.late_session import LateSession, Place
from duologue.sessions.stand_ins.returning_session import ReturningSession, check_comes_back
from duologue.sessions.watching.look import SessionLook

_NOTHING_ASKED = SessionPatch()


class LocalHost:
    """A ``HostPort`` on the sessions of this process.

    Args:
        queue: Where calls wait for a place; nobody overtakes them. By default none waits.
    """

    def __init__(
        self,
        sessions: SessionManager,
        clock: Clock,
        wheel: TimerWheel,
        queue: CallQueue | None = None,
    ) -> None:
        self.queue = CallQueue(0) if queue is None else queue
        self._sessions = sessions
        self._clock = clock
        self._wheel = wheel

    @property
    def accepting(self) -> bool:
        """Whether it is not going down."""
        return self._sessions.accepting

    def __len__(self) -> int:
        return len(self._sessions)

    def check_loaded(self) -> None:
        """Nothing: whoever starts this process knows."""

    def check_room(self) -> None:
        """Refuse what ``open`` would refuse."""
        self._sessions.check_room()
        self.queue.check_turn()

    async def open(self, arrival: Arrival) -> Joined:
        """Receive a client."""
        return self.receive(arrival)

    def receive(self, arrival: Arrival) -> Joined:
        """Receive a client, at once.

        Raises:
            ClientError: It may not have what it asks for.
            CapacityError: There is no room.
        """
        match arrival:
            case Opening():
                return self.begin(arrival)
            case LateOpening():
                if not arrival.resumes:
                    self.queue.check_turn()
                return self._await_description(arrival)
            case InTurn():
                return self._in_turn(arrival)
            case Return(session_id=session_id, resume_token=token, owner=owner):
                ticket = self._sessions.claim(session_id, token, owner)
                check_comes_back(ticket)
                return ReturningSession(ticket)
            case LookingOn(call_id=call_id):
                raise unknown_call(call_id)

    def begin(self, opening: Opening) -> Joined:
        """Open a session."""
        self.queue.check_turn()
        return self._open(opening, opening.patch)

    async def preview(self, model: str | None, patch: SessionPatch) -> AnySession:
        """Return what a session opened with ``patch`` would be like."""
        return self._sessions.preview(model, patch)

    async def look(self) -> list[SessionLook]:
        """Return what all open sessions look like."""
        return self._sessions.look()

    async def hang_up(self, call_id: str, owner: Owner) -> None:
        """There is no other gateway."""
        raise unknown_call(call_id)

    def call_began(self, call_id: str, owner: Owner) -> None:
        """There is no other gateway that would ask."""

    def call_ended(self, call_id: str) -> None:
        """Likewise."""

    def _in_turn(self, arrival: InTurn) -> Joined:
        """Open a session, or let a client stand in the queue for a place."""
        opening, queue = arrival.opening, self.queue

        def open_now() -> Joined:
            if isinstance(opening, Opening):
                return self._open(opening, opening.patch)
            return self._await_description(opening)

        if not len(queue):
            try:
                return open_now()
            except CapacityError as exc:
                if exc.code != ErrorCode.SERVER_FULL or not queue.capacity:
                    raise
        queue.check_room()
        session = QueuedSession(queue, open_now, self._clock, self._wheel, arrival.timeout_s)
        queue.join(session)
        return session

    def _open(self, opening: Opening, patch: SessionPatch) -> Joined:
        return self._sessions.open(
            opening.model,
            opening.kind,
            patch,
            opening.owner,
            edge_plays=opening.edge_plays,
            via=opening.via,
            resumable=opening.resumable,
        )

    def _await_description(self, arrival: LateOpening) -> LateSession:
        opening = arrival.opening
        sessions = self._sessions

        def open_described(patch: SessionPatch) -> Joined:
            # What a secret says comes first, and the client may change it like anybody.
            of_secret = opening.patch != _NOTHING_ASKED
            session = self._open(opening, as_duplex(opening.patch) if of_secret else patch)
            if of_secret:
                session.offer(UpdateSession(session=patch))
            return session

        def resume(command: ResumeSession) -> Ticket:
            return sessions.claim(
                command.session_id,
                command.resume_token,
                opening.owner,
                command.last_received_server_event_seq,
            )

        kept = not arrival.resumes
        if kept:
            try:
                sessions.keep_place()
            except CapacityError:
                if not sessions.detached:
                    raise
                # Somebody may come back, to a place that is his already.
                kept = False
        place = Place(
            open_described, resume, sessions.keep_place, sessions.give_up_place, kept=kept
        )
        return LateSession(place, self._clock, self._wheel, arrival.timeout_s)


def unknown_call(call_id: str) -> UnknownSession:
    """Return the refusal of a call that there is not, or not for this caller."""
    return UnknownSession(f"there is no call {call_id[:80]!r}, or it has ended")
