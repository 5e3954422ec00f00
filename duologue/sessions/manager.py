"""The session manager: opens sessions within the limit, finds them, and ends them all at last.

This module must not know connections or what happens in a session.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping

from duologue.core.clock import Clock
from duologue.core.errors import CapacityError, ClientError
from duologue.core.ids import IdMaker
from duologue.core.wheel import TimerWheel
from duologue.duplex_plugins.contract import DuplexPlugin
from duologue.engines.payloads import Payload
from duologue.engines.ports import Ended, EnginePort
from duologue.protocol.commands import Command
from duologue.protocol.errors import ErrorCode
from duologue.protocol.events import Event
from duologue.protocol.session_config import AnySession, SessionKind
from duologue.protocol.session_patch import SessionPatch
from duologue.sessions.history.inheritance import Inheritance
from duologue.sessions.owners import ANYBODY, Owner, Owners, check_same
from duologue.sessions.places import Places
from duologue.sessions.resumption.lease import Lease, TokenMaker, new_token, refuse_unknown
from duologue.sessions.resumption.past import Kept, PastSessions
from duologue.sessions.resumption.resumable_session import ResumableSession
from duologue.sessions.resumption.succession import left_by
from duologue.sessions.resumption.ticket import InheritanceTicket, SessionTicket, Ticket
from duologue.sessions.session import Session
from duologue.sessions.session_maker import NO_CHANGE, Plan, SessionMaker
from duologue.sessions.settings import SessionSettings, without_missing
from duologue.sessions.via import SOCKET, Via
from duologue.sessions.watching.bounds import note_fills
from duologue.sessions.watching.look import SessionLook, look_at
from duologue.sessions.watching.observer import Observation
from duologue.sessions.watching.reaper import Reaper
from duologue.telemetry import Kinds, get_logger

RETRY_AFTER_S = 5.0
NO_LIMIT = 1_000_000
"""Of pipelines about whose places nothing is said."""


class SessionManager:
    """All sessions of this process.

    Args:
        plugins: By the name of the model that clients ask for; the first is the default.
        settings: Limits and manners of sessions.
    """

    def __init__(
        self,
        engine: EnginePort,
        plugins: Mapping[str, DuplexPlugin],
        settings: SessionSettings,
        *,
        clock: Clock,
        wheel: TimerWheel,
        new_id: IdMaker,
        observation: Observation,
        new_token: TokenMaker = new_token,
        slots: Callable[[str], int] = lambda pipeline: NO_LIMIT,
    ) -> None:
        self.accepting = True
        self._settings = settings = without_missing(settings, engine.has_pipeline)
        self._maker = SessionMaker(
            engine,
            plugins,
            settings,
            clock=clock,
            wheel=wheel,
            new_id=new_id,
            observation=observation,
            new_token=new_token,
        )
        self._clock = clock
        self._observation = observation
        self._log = get_logger("sessions")
        self._sessions: dict[str, Session] = {}
        self.all = self._sessions.values  # looks at those that are open
        self._owners = Owners(observation.metrics)
        self._empty = asyncio.Event()
        self._places = Places(settings.max_sessions, self._maker.resident, slots)
        self.past = PastSessions(settings.rollover_bytes)
        self._reaper = Reaper(clock, wheel, observation.metrics.sessions_reaped)

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def models(self) -> list[str]:
        """Names of the models that clients can ask for."""
        return self._maker.models

    def get(self, session_id: str) -> Session | None:
        """Return an open session."""
        return self._sessions.get(session_id)

    def look(self) -> list[SessionLook]:
        """Return what all open sessions look like, the oldest first."""
        now = self._clock.now()
        return [look_at(session, now) for session in self._sessions.values()]

    def note_fills(self) -> Iterator[None]:
        """Publish how full the bounds are, of the sessions and of the house; in pieces."""
        metrics, settings = self._observation.metrics, self._settings
        metrics.bound_fill["sessions"].set(self._places.fill)
        sessions = tuple(self._sessions.values())
        return note_fills(sessions, self.past.held_bytes, settings, metrics)

    @property
    def max_sessions(self) -> int:
        """How many there may be: as was set, or as the models hold."""
        return self._places.most

    @property
    def kept_places(self) -> int:
        """Of sessions that their clients have yet to describe. For tests."""
        return self._places.kept

    @property
    def detached(self) -> int:
        """How many sessions have lost their connection and wait for another."""
        leases = (session.lease for session in self._sessions.values())
        return sum(lease is not None and lease.is_detached for lease in leases)

    def check_room(self, model: str | None = None) -> None:
        """Refuse before the upgrade what ``open`` would refuse after it.

        Args:
            model: One of ``models``; ``None``: it is not known yet.

        Raises:
            CapacityError: There are as many sessions as there may be, or the server is going down.
        """
        if not self.accepting:
            raise CapacityError(
                "the server is shutting down",
                code=ErrorCode.SHUTTING_DOWN,
                retry_after_s=RETRY_AFTER_S,
            )
        self._places.check(model)

    def keep_place(self) -> None:
        """Keep room for a session that its client has yet to describe.

        Raises:
            CapacityError: There is no room, see ``check_room``.
        """
        self.check_room()
        self._places.keep()

    def give_up_place(self) -> None:
        """Keep one place less: the session is opened now, or never."""
        self._places.give_up()

    def open(
        self,
        model: str | None,
        kind: SessionKind = "realtime",
        patch: SessionPatch = NO_CHANGE,
        owner: Owner = ANYBODY,
        *,
        edge_plays: bool = False,
        via: Via = SOCKET,
        resumable: bool = False,
    ) -> Session:
        """Open a session.

        Args:
            model: What the client asked for. A name that is not ours means the default model:
                stock clients send the names of their vendor's models.
            kind: What it is for, until the client says otherwise.
            patch: What is different from the start; as the first ``session.update`` would be. One
                of the duplex dialect makes the session one of its own.
            owner: Whose session it is.
            edge_plays: The edge paces the sound, and reports what was played.
            via: How its client came in.
            resumable: It may outlive its connection, and ``session.created`` has the token.

        Raises:
            CapacityError: There is no room, see ``check_room``.
            RateLimited: The owner has as many sessions open as it may.
            ClientError: The patch is not allowed, as in ``session.update``; or nobody here can
                transcribe.
        """
        self.check_room()
        self._owners.check(owner)
        plan = self._maker.plan(model, kind, patch)
        self.check_room(plan.asks)
        return self._start(plan, owner, via, edge_plays=edge_plays, resumable=resumable)

    def _start(
        self,
        plan: Plan,
        owner: Owner,
        via: Via,
        *,
        edge_plays: bool,
        resumable: bool,
        inherited: Inheritance | None = None,
    ) -> Session:
        session = self._maker.make(
            plan,
            owner,
            self._closed,
            self._reaper.add,
            edge_plays=edge_plays,
            resumable=resumable,
            inherited=inherited,
        )
        self._owners.add(owner)
        self._sessions[session.id] = session
        self._places.take(session.id, plan.asks)
        session.via, session.edge_plays = via, edge_plays
        self._observation.metrics.calls_active[via.transport, via.dialect].inc()
        session.start()
        if inherited is not None:
            session.inherit(inherited)
        return session

    def claim(
        self, session_id: str, token: str, owner: Owner, received: int | None = None
    ) -> Ticket:
        """Check whether a connection may go on with a session. Changes nothing.

        Who does not have the token learns nothing, not even whether there is such a session.

        Args:
            owner: Who asks; only who opened a session may go on with it.
            received: As in ``ResumableSession.claim``.

        Raises:
            ClientError: It may not.
        """
        try:
            session = self._sessions.get(session_id)
            if session is None:
                return self._claim_conversation(session_id, token, owner)
            if not isinstance(session, ResumableSession):
                raise refuse_unknown(token)
            claim = session.claim(token, received)
            check_same(session.owner, owner)
        except ClientError as exc:
            self._count_resume(exc.code)
            raise
        return SessionTicket(session, claim, received, self._count_resume)

    def _claim_conversation(self, session_id: str, token: str, owner: Owner) -> Ticket:
        """Check whether a connection may go on with the conversation of a session that is over."""
        kept = self.past.claim(session_id, token, self._clock.now())
        if kept is None:
            raise self.past.refusal(session_id, token)
        check_same(kept.owner, owner)
        return InheritanceTicket(kept, self.past.take, self._roll_over, self._count_resume)

    def _roll_over(self, kept: Kept) -> Session:
        """Open the session that goes on with a conversation."""
        self.check_room()
        self._owners.check(kept.owner)
        inherited = kept.inheritance
        return self._start(
            self._maker.plan_heir(inherited),
            kept.owner,
            kept.via,
            edge_plays=inherited.edge_plays,
            resumable=True,
            inherited=inherited,
        )

    def _count_resume(self, outcome: str) -> None:
        self._observation.metrics.resumes[outcome].inc()
        self._log.info("session_resume", outcome=outcome)

    def preview(self, model: str | None, patch: SessionPatch) -> AnySession:
        """Return what a session opened with ``patch`` would be like, without opening it.

        Raises:
            ClientError: The patch is not allowed, as in ``session.update``.
        """
        return self._maker.preview(self._maker.plan(model, "realtime", patch))

    def close_all(self, reason: str) -> None:
        """Accept no more sessions, and end those that are open."""
        self.accepting = False
        for session in list(self._sessions.values()):
            session.close(reason)

    async def wait_empty(self, timeout_s: float) -> None:
        """Wait until no session is open, for ``timeout_s`` at most."""
        if self._sessions and timeout_s > 0:
            self._empty.clear()
            try:
                async with asyncio.timeout(timeout_s):
                    await self._empty.wait()
            except TimeoutError:
                self._log.info("drain_timed_out", sessions=len(self._sessions))

    def _closed(self, session: Session, reason: str) -> None:
        del self._sessions[session.id]
        self._places.leave(session.id)
        if (lease := session.lease) is not None:
            self.past.add(session.id, lease, expired=reason == ErrorCode.RESUME_EXPIRED)
            if reason == ErrorCode.SESSION_EXPIRED and self._settings.rollover_bytes:
                self._keep_conversation(session, lease)
        self._owners.remove(session.owner)
        via = session.via
        self._observation.metrics.calls_active[via.transport, via.dialect].inc(-1)
        if not self._sessions:
            self._empty.set()

    def _keep_conversation(self, session: Session, lease: Lease) -> None:
        now = self._clock.now()
        until = now + self._settings.disconnect_grace_s
        inheritance = left_by(session)
        self.past.keep(Kept(lease.tokens, inheritance, session.owner, session.via, until), now)


def recorded_kinds() -> Kinds:
    """Return the types that flight recorders note: commands and payloads in, events out."""
    return Kinds(inputs=(*_members(Command), *_members(Payload), Ended), effects=_members(Event))


def _members(union: object) -> tuple[type, ...]:
    return tuple(getattr(union, "__args__", ()))
