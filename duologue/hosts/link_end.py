"""One end of a link: channels it opened, channels it serves, questions both ways.

Messages in, messages into the outbox; the same for both ends. This module must not know sockets,
clocks, nor what channels and questions are about.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol

from duologue.core.errors import DuologueError, EngineError, LimitExceeded
from duologue.hosts.engine_messages import FromEngine, ToEngine
from duologue.hosts.faults import exception_of, fault_of, host_lost
from duologue.hosts.messages import (
    Answered,
    Ask,
    Attach,
    CloseChannel,
    Detach,
    LinkMessage,
    Misread,
    OfLink,
    OpenChannel,
    Opened,
    Played,
    Refused,
    Said,
    Taken,
    ToOpener,
    Unanswered,
)
from duologue.hosts.outbox import Outbox
from duologue.hosts.port import Coming, Wanted
from duologue.hosts.questions import Question, Reply
from duologue.hosts.remote_session import RemoteSession
from duologue.hosts.served_channel import ServedChannel
from duologue.hosts.settings import LinkSettings
from duologue.protocol.errors import ErrorCode, refused
from duologue.sessions.port import Joined
from duologue.sessions.session import CLIENT_GONE

MAX_QUESTIONS = 256
"""Of the other end, that are being answered; it has to wait before it asks more."""


class LinkServer(Protocol):
    """What stands behind an end: a session host, or a gateway with calls of its own."""

    def receive(self, arrival: Wanted) -> Joined | Coming:
        """Receive a client of the other end; what takes time is begun by the caller.

        Raises:
            DuologueError: It may not come, or not now.
        """
        ...

    async def answer(self, question: Question) -> Reply:
        """Answer a question of the other end.

        Raises:
            DuologueError: There is no answer.
        """
        ...

    def hear(self, message: OfLink | ToEngine | FromEngine) -> None:
        """Take what concerns no channel and asks nothing."""
        ...

    def unsent(self, message: ToEngine | FromEngine, why: str) -> None:
        """A message to the other end was too long for the link."""
        ...


class LinkEnd:
    """One end.

    Args:
        group: Where answers that take time are worked on.

    Concurrency:
        Belongs to the event loop.
    """

    def __init__(
        self, server: LinkServer, outbox: Outbox, limits: LinkSettings, group: asyncio.TaskGroup
    ) -> None:
        self.outbox = outbox
        self._server = server
        self._limits = limits
        self._group = group
        self._opened: dict[int, RemoteSession] = {}
        self._served: dict[int, ServedChannel] = {}
        self._coming: dict[int, asyncio.Task[None]] = {}
        """Channels that the other end has opened, and that take time to be served."""

        self._answering: set[int] = set()
        self._asked: dict[int, asyncio.Future[Reply]] = {}
        self._unwanted: dict[int, Callable[[Reply], None]] = {}
        self._numbers = 0
        self._lost = False

    @property
    def is_busy(self) -> bool:
        """Whether there is a channel, either way. For tests."""
        return bool(self._opened or self._served)

    # What this end wants

    def begin(self, arrival: Wanted) -> RemoteSession:
        """Open a channel; where it is refused, the port ends with the reason."""
        return self._begin(arrival, None)

    async def open(self, arrival: Wanted) -> RemoteSession:
        """Open a channel.

        Raises:
            DuologueError: It was refused, or the link was lost.
        """
        answered: asyncio.Future[DuologueError | None] = asyncio.get_running_loop().create_future()
        session = self._begin(arrival, answered)
        try:
            refusal = await answered
        except asyncio.CancelledError:
            session.close(CLIENT_GONE)
            raise
        if refusal is not None:
            raise refusal
        return session

    async def ask(
        self, question: Question, unwanted: Callable[[Reply], None] | None = None
    ) -> Reply:
        """Ask the other end.

        Args:
            unwanted: Is given the answer where whoever asked was cancelled before it came.

        Raises:
            DuologueError: There is no answer, or the link was lost.
        """
        if self._lost:
            raise host_lost()
        number = self._next()
        self._asked[number] = asyncio.get_running_loop().create_future()
        self.outbox.put(Ask(number, question))
        try:
            return await self._asked[number]
        except asyncio.CancelledError:
            if unwanted is not None and not self._lost:
                self._unwanted[number] = unwanted
            raise
        finally:
            del self._asked[number]

    # From the other end

    def take(self, messages: Sequence[LinkMessage]) -> None:
        """Take all that came with one read, then wake the connections that it is for.

        So an interruption that came behind sound is there before the sound is written.

        Raises:
            msgspec.MsgspecError: Something cannot be read.
        """
        woken: dict[int, RemoteSession] = {}
        for message in messages:
            # Most of what passes is what clients say and hear, so that is asked for first.
            if isinstance(message, Said):
                if (served := self._served.get(message.channel)) is not None:
                    served.receive(message)
            elif isinstance(message, ToOpener):
                if (session := self._opened.get(message.channel)) is not None:
                    woken[message.channel] = session
                    session.receive(message)
            else:
                self._take_other(message)
        for session in woken.values():
            session.wake()

    def go_on(self) -> None:
        """The transport takes more again."""
        self.outbox.writable = True
        for served in list(self._served.values()):
            served.go_on()

    def unsent(self, message: LinkMessage, why: str) -> None:
        """A message could not be sent: tell whoever waits for what it would lead to.

        Raises:
            EngineError: It is of a kind that is always short and plain: a mistake of ours.
        """
        match message:
            case Ask(number=number):
                if (asked := self._asked.get(number)) is not None and not asked.done():
                    asked.set_exception(LimitExceeded(why, code=ErrorCode.MESSAGE_TOO_LARGE))
            case Answered(number=number):
                self.outbox.put(Unanswered(number, fault_of(DuologueError(why))))
            case _ if isinstance(message, ToEngine | FromEngine):
                self._server.unsent(message, why)
            case OpenChannel(channel=channel):
                if (session := self._opened.get(channel)) is not None:
                    session.receive(Refused(channel, fault_of(refused(why, None))))
                    session.wake()
            case Misread(channel=channel) | Played(channel=channel):
                if (session := self._opened.get(channel)) is not None:
                    session.leave(ErrorCode.SERVER_ERROR)
            case _:
                raise EngineError(f"{type(message).__name__}: {why}")

    def leave(self, reason: str) -> None:
        """Let go of every session that was opened from here; its connection ends."""
        for session in list(self._opened.values()):
            session.leave(reason)

    def lost(self) -> None:
        """There is no link any more: everything on it ends."""
        self._lost = True
        for session in list(self._opened.values()):
            session.lost()
        for served in list(self._served.values()):
            served.lost()
        for coming in self._coming.values():
            coming.cancel()
        for asked in self._asked.values():
            if not asked.done():
                asked.set_exception(host_lost())

    # Private

    def _take_other(self, message: LinkMessage) -> None:
        match message:
            case OpenChannel():
                self._receive(message)
            case Ask():
                self._answer(message)
            case Answered(number=number, reply=reply):
                if (asked := self._asked.get(number)) is not None and not asked.done():
                    asked.set_result(reply)
                elif (unwanted := self._unwanted.pop(number, None)) is not None:
                    unwanted(reply)
            case Unanswered(number=number, fault=fault):
                self._unwanted.pop(number, None)
                if (asked := self._asked.get(number)) is not None and not asked.done():
                    asked.set_exception(exception_of(fault))
            case Attach() | Detach() | CloseChannel() | Misread() | Played() | Taken():
                if (served := self._served.get(message.channel)) is not None:
                    served.receive(message)
                elif isinstance(message, CloseChannel | Detach) and message.channel in self._coming:
                    self._coming.pop(message.channel).cancel()  # nobody waits for it any more
            case _ if isinstance(message, OfLink | ToEngine | FromEngine):
                self._server.hear(message)

    def _begin(
        self, arrival: Wanted, answered: asyncio.Future[DuologueError | None] | None
    ) -> RemoteSession:
        if self._lost:
            raise host_lost()

        def on_opened(refusal: DuologueError | None) -> None:
            if answered is not None and not answered.done():
                answered.set_result(refusal)

        number = self._next()
        session = RemoteSession(
            number,
            self.outbox,
            self._limits,
            self._drop_opened,
            None if answered is None else on_opened,
        )
        self._opened[number] = session
        self.outbox.put(OpenChannel(number, arrival))
        return session

    def _receive(self, message: OpenChannel) -> None:
        channel = message.channel
        try:
            port = self._server.receive(message.arrival)
        except DuologueError as exc:
            self.outbox.put(Refused(channel, fault_of(exc)))
            return
        if callable(port):
            self._coming[channel] = self._group.create_task(
                self._receive_later(channel, port), name="link-receive"
            )
        else:
            self._serve(channel, port)

    async def _receive_later(self, channel: int, coming: Coming) -> None:
        try:
            port = await coming()
        except DuologueError as exc:
            self.outbox.put(Refused(channel, fault_of(exc)))
        else:
            self._serve(channel, port)
        finally:
            self._coming.pop(channel, None)

    def _serve(self, channel: int, port: Joined) -> None:
        self._served[channel] = ServedChannel(
            channel, port, self.outbox, self._limits, self._drop_served
        )
        self.outbox.put(Opened(channel, port.id))

    def _answer(self, message: Ask) -> None:
        if len(self._answering) >= MAX_QUESTIONS:
            self.outbox.put(Unanswered(message.number, fault_of(host_lost())))
            return
        self._answering.add(message.number)
        self._group.create_task(self._work_on(message), name="link-answer")

    async def _work_on(self, message: Ask) -> None:
        try:
            self.outbox.put(Answered(message.number, await self._server.answer(message.question)))
        except DuologueError as exc:
            self.outbox.put(Unanswered(message.number, fault_of(exc)))
        finally:
            self._answering.discard(message.number)

    def _drop_opened(self, number: int) -> None:
        self._opened.pop(number, None)

    def _drop_served(self, number: int) -> None:
        self._served.pop(number, None)

    def _next(self) -> int:
        self._numbers += 1
        return self._numbers
