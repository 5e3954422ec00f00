"""A session host at the other end of a link, as a ``HostPort``.

This module must not know sockets, nor which of several hosts it is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from typing import Protocol

from duologue.core.clock import Clock
from duologue.core.errors import CapacityError, DuologueError
from duologue.hosts.call_queue import others_wait
from duologue.hosts.engine_messages import FromEngine, ToEngine
from duologue.hosts.faults import host_lost
from duologue.hosts.link_end import LinkEnd
from duologue.hosts.local import unknown_call
from duologue.hosts.messages import AnswerFailed, CallBegan, CallEnded, OfLink, Status
from duologue.hosts.outbox import Outbox
from duologue.hosts.packing import unpack_event
from duologue.hosts.port import Coming, LookingOn, Opening, Wanted
from duologue.hosts.questions import (
    AskAllFigures,
    AskFigures,
    AskHangUp,
    AskLook,
    AskPreview,
    AskRequest,
    Done,
    Figures,
    Looked,
    Previewed,
    Question,
    Reply,
    Waits,
)
from duologue.hosts.remote_answers import RemoteAnswers
from duologue.hosts.remote_engine import RemoteEngine
from duologue.hosts.remote_jobs import RemoteJobs
from duologue.hosts.remote_lifecycle import RemoteLifecycle
from duologue.hosts.settings import LinkSettings
from duologue.protocol.errors import ErrorCode
from duologue.protocol.events import SessionUpdated
from duologue.protocol.session_config import AnySession
from duologue.protocol.session_patch import SessionPatch
from duologue.sessions.owners import Owner
from duologue.sessions.port import Joined
from duologue.sessions.watching.look import SessionLook
from duologue.telemetry.gathering import ProcessFigures

RETRY_AFTER_S = 1.0


class CallHolder(Protocol):
    """This gateway's own WebRTC calls, for others of the same host."""

    def look_on(self, call_id: str, owner: Owner) -> Joined:
        """Let somebody look on; raises ``UnknownSession``."""
        ...

    def end_call(self, call_id: str, owner: Owner) -> None:
        """End a call; raises ``UnknownSession``."""
        ...


class RemoteHost:
    """One host. Without a link it refuses all, and is worth another attempt.

    Args:
        pipelines: What its engine serves.
        figures: Takes the figures of this process.
    """

    def __init__(
        self,
        pipelines: Collection[str],
        limits: LinkSettings,
        clock: Clock,
        figures: Callable[[str], Awaitable[ProcessFigures]],
    ) -> None:
        self.status = Status()
        self.engine = RemoteEngine(self._say, pipelines, clock)
        self.jobs = RemoteJobs(self._ask)
        self.lifecycle = RemoteLifecycle(self._ask)
        self.answers = RemoteAnswers(self._ask, self._tell_failed)
        self.calls: CallHolder | None = None
        self.name = ""
        self._limits = limits
        self._figures = figures
        self._end: LinkEnd | None = None
        self._held: dict[str, Owner] = {}
        self._changed = asyncio.Event()

    # HostPort

    @property
    def accepting(self) -> bool:
        """Whether it is not going down, as far as is known."""
        return self.status.accepting

    @property
    def is_linked(self) -> bool:
        """Whether it can be reached."""
        return self._end is not None

    def __len__(self) -> int:
        return self.status.sessions

    def check_loaded(self) -> None:
        """Refuse what needs a host with its models loaded."""
        if self._end is None:
            raise host_lost()
        if not self.status.loaded:
            raise CapacityError(
                "the models are still loading",
                code=ErrorCode.NOT_READY,
                retry_after_s=RETRY_AFTER_S,
            )

    def check_room(self) -> None:
        """Refuse what the host would; it has the last word."""
        self.check_loaded()
        status = self.status
        if not status.accepting:
            raise CapacityError(
                "the server is shutting down",
                code=ErrorCode.SHUTTING_DOWN,
                retry_after_s=RETRY_AFTER_S,
            )
        if status.sessions >= status.max_sessions and not status.detached:
            raise CapacityError(
                f"{status.sessions} sessions are open, the limit is {status.max_sessions}",
                retry_after_s=RETRY_AFTER_S,
            )
        if status.waiting:
            raise others_wait(status.waiting)

    async def open(self, arrival: Wanted) -> Joined:
        """Receive a client, or take a slot."""
        return await self._linked().open(arrival)

    def begin(self, opening: Opening) -> Joined:
        """Open a session for a connection that is there."""
        return self._linked().begin(opening)

    async def preview(self, model: str | None, patch: SessionPatch) -> AnySession:
        """Return what a session opened with ``patch`` would be like."""
        reply = await self._linked().ask(AskPreview(model, patch))
        assert isinstance(reply, Previewed), "each kind of question has one kind of answer"
        event = unpack_event(reply.event)
        assert isinstance(event, SessionUpdated)
        return event.session

    async def look(self) -> list[SessionLook]:
        """Return what all open sessions look like."""
        reply = await self._linked().ask(AskLook())
        assert isinstance(reply, Looked)
        return reply.sessions

    async def hang_up(self, call_id: str, owner: Owner) -> None:
        """End a call that another gateway holds."""
        await self._linked().ask(AskHangUp(call_id, owner))

    def call_began(self, call_id: str, owner: Owner) -> None:
        """Let the host know of a call that is held here."""
        self._held[call_id] = owner
        if self._end is not None:
            self._end.outbox.put(CallBegan(call_id, owner))

    def call_ended(self, call_id: str) -> None:
        """And that it is over."""
        self._held.pop(call_id, None)
        if self._end is not None:
            self._end.outbox.put(CallEnded(call_id))

    # Beyond

    async def take(self, owner_name: str) -> float:
        """Count a request with a key, for all gateways of the host (``gateway.auth``)."""
        reply = await self._linked().ask(AskRequest(owner_name))
        assert isinstance(reply, Waits)
        return reply.wait_s

    async def all_figures(self) -> list[ProcessFigures]:
        """Return the figures of the host and all its gateways."""
        reply = await self._linked().ask(AskAllFigures())
        assert isinstance(reply, Figures)
        return reply.processes

    async def wait_status(self, wanted: Callable[[Status], bool]) -> None:
        """Wait until the host is as it should be."""
        while self._end is None or not wanted(self.status):
            self._changed.clear()
            await self._changed.wait()

    def leave(self, reason: str) -> None:
        """End all connections to sessions here; the sessions go on without them."""
        if self._end is not None:
            self._end.leave(reason)

    # From the link

    def joined(self, host: str, outbox: Outbox, group: asyncio.TaskGroup) -> LinkEnd:
        """There is a link; returns this end of it."""
        self.name = host
        self._end = LinkEnd(self, outbox, self._limits, group)
        for call_id, owner in self._held.items():
            outbox.put(CallBegan(call_id, owner))
        return self._end

    def lost(self) -> None:
        """There is no link any more."""
        self._end = None
        self.status = Status()
        self.engine.lost()
        self._changed.set()

    def receive(self, arrival: Wanted) -> Joined | Coming:
        """Receive somebody from another gateway."""
        if self.calls is None or not isinstance(arrival, LookingOn):
            raise unknown_call(getattr(arrival, "call_id", ""))
        return self.calls.look_on(arrival.call_id, arrival.owner)

    async def answer(self, question: Question) -> Reply:
        """Answer the host."""
        match question:
            case AskFigures():
                return Figures([await self._figures("")])
            case AskHangUp(call_id=call_id, owner=owner) if self.calls is not None:
                self.calls.end_call(call_id, owner)
                return Done()
            case _:
                raise DuologueError(f"a gateway cannot answer {type(question).__name__}")

    def hear(self, message: OfLink | ToEngine | FromEngine) -> None:
        """Take what concerns no channel."""
        if isinstance(message, Status):
            self.status = message
            self._changed.set()
        elif isinstance(message, FromEngine):
            self.engine.receive(message)

    def unsent(self, message: ToEngine | FromEngine, why: str) -> None:
        """An input of a request was too long for the link."""
        if isinstance(message, ToEngine):
            self.engine.unsent(message, why)

    def _linked(self) -> LinkEnd:
        if self._end is None:
            raise host_lost()
        return self._end

    async def _ask(
        self, question: Question, unwanted: Callable[[Reply], None] | None = None
    ) -> Reply:
        return await self._linked().ask(question, unwanted)

    def _tell_failed(self, message: AnswerFailed) -> None:
        if self._end is not None:
            self._end.outbox.put(message)

    def _say(self) -> Callable[[ToEngine], None] | None:
        return None if self._end is None else self._end.outbox.put
