"""A session host that serves gateways in other processes: the end of every link that listens.

Sessions, limits per key and the list of WebRTC calls are here, whichever gateway a client comes to.
This module must not know what happens in a session, nor how the engine works.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from duologue.core.clock import Clock
from duologue.core.errors import ConfigError, DuologueError
from duologue.core.wheel import TimerWheel
from duologue.engines.lifecycle_port import LifecyclePort
from duologue.engines.ports import EnginePort
from duologue.hosts.answer_questions import AnswerQuestion
from duologue.hosts.answers import AnswersPort
from duologue.hosts.engine_messages import FromEngine, ToEngine
from duologue.hosts.handshake import HostHandshake
from duologue.hosts.held_slot import held_slot
from duologue.hosts.job_questions import JobQuestion
from duologue.hosts.lifecycle_questions import LifecycleQuestion
from duologue.hosts.link import SILENCE_S, Link
from duologue.hosts.link_end import LinkEnd
from duologue.hosts.local import LocalHost, unknown_call
from duologue.hosts.messages import AnswerFailed, CallBegan, CallEnded, OfLink, Status
from duologue.hosts.outbox import Outbox
from duologue.hosts.packing import pack_event
from duologue.hosts.port import Coming, LookingOn, Slot, Wanted
from duologue.hosts.questions import (
    AskAllFigures,
    AskFigures,
    AskHangUp,
    AskLook,
    AskPreview,
    AskRequest,
    Figures,
    Looked,
    Previewed,
    Question,
    Reply,
    Waits,
)
from duologue.hosts.rate_limit import RateLimit
from duologue.hosts.remote_lifecycle import answer_about_stages
from duologue.hosts.request_slots import RequestSlots
from duologue.hosts.served_answers import ServedAnswers
from duologue.hosts.served_engine import ServedEngine
from duologue.hosts.served_jobs import answer_about_jobs
from duologue.hosts.settings import LinkSettings
from duologue.jobs.port import JobPort
from duologue.protocol.events import SessionUpdated
from duologue.sessions.owners import Owner
from duologue.sessions.port import Joined
from duologue.telemetry import get_logger
from duologue.telemetry.gathering import ProcessFigures

STATUS_S = 0.1
"""How often gateways are told how the host is, where that has changed."""

FIGURES_TIMEOUT_S = 2.0
"""A gateway that takes longer is left out of the figures."""


@dataclass(frozen=True, slots=True)
class HostParts:
    """What a host serves.

    Args:
        name: Of this host, for logs and figures.
        version: Of Duologue; gateways must be of the same.
        sessions: Where sessions are opened.
        engine: For plain requests.
        look: Returns how the host is; the gateways' number is filled in here.
        figures: Takes the figures of this process.
        slots: For plain requests.
        answers: That later requests refer to.
        jobs: ``None``: no model here does any.
        lifecycle: Gives orders to the engine's stages.
        rates: Requests per minute that each key with a limit has.
    """

    name: str
    version: str
    sessions: LocalHost
    engine: EnginePort
    look: Callable[[], Status]
    figures: Callable[[str], Awaitable[ProcessFigures]]
    slots: RequestSlots
    answers: AnswersPort
    jobs: JobPort | None = None
    lifecycle: LifecyclePort | None = None
    rates: Mapping[str, RateLimit] = field(default_factory=dict)


class HostServer:
    """Serves links.

    Args:
        secret: What gateways must know; empty for a socket that only this user may open.
        edges_expected: The host says that it is whole when so many gateways are there.

    Concurrency:
        Belongs to the event loop.
    """

    def __init__(
        self,
        parts: HostParts,
        limits: LinkSettings,
        clock: Clock,
        wheel: TimerWheel,
        *,
        secret: bytes = b"",
        edges_expected: int = 0,
    ) -> None:
        self.parts = parts
        self.edges: dict[Link, EdgeOfHost] = {}
        self.calls: dict[str, tuple[EdgeOfHost, Owner]] = {}
        self._limits = limits
        self._clock = clock
        self._wheel = wheel
        self._secret = secret
        self._edges_expected = edges_expected
        self._group: asyncio.TaskGroup | None = None
        self._servers: list[asyncio.Server] = []
        self._links: set[Link] = set()
        self._status = Status()
        self._changed = asyncio.Event()
        self._log = get_logger("hosts")

    async def start(self) -> None:
        """From now on there may be links, until ``stop``."""
        # Entered and left by hand: what happens between is not the group's.
        group = asyncio.TaskGroup()
        await group.__aenter__()
        self._group = group
        self.on_timer()

    async def listen_unix(self, path: Path) -> None:
        """Listen on a socket that only this user may open."""
        sock = await asyncio.to_thread(_private_socket, path)
        loop = asyncio.get_running_loop()
        self._servers.append(await loop.create_unix_server(self._link, sock=sock))

    async def listen_tcp(self, host: str, port: int, context: ssl.SSLContext | None = None) -> int:
        """Listen for gateways on other machines.

        Returns:
            The port that was taken.

        Raises:
            ConfigError: There is no secret, or the address cannot be had.
        """
        if not self._secret:
            raise ConfigError("gateways of other machines need hosts.link_secret")
        loop = asyncio.get_running_loop()
        try:
            server = await loop.create_server(
                self._link,
                host,
                port,
                ssl=context,
                ssl_handshake_timeout=None if context is None else SILENCE_S,
            )
        except OSError as exc:
            raise ConfigError(f"cannot listen for links on {host}:{port}: {exc.strerror}") from exc
        self._servers.append(server)
        taken: int = server.sockets[0].getsockname()[1]
        return taken

    async def stop(self) -> None:
        """End all links, and wait until nothing of them is left."""
        self._wheel.set(self, None)
        for server in self._servers:
            server.close()
        for link in list(self._links):
            link.close("the session host stops")
        group, self._group = self._group, None
        if group is not None:
            await group.__aexit__(None, None, None)

    async def wait_edges(self) -> None:
        """Wait until as many gateways are there as are expected."""
        while len(self.edges) < self._edges_expected:
            await self._change()

    async def wait_left(self, timeout_s: float) -> None:
        """Wait until no gateway is there, for ``timeout_s`` at most."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                while self.edges:
                    await self._change()

    async def wait_idle(self, timeout_s: float) -> None:
        """Wait until no plain request runs, for ``timeout_s`` at most."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                while any(len(edge.engine) for edge in self.edges.values()):
                    await self._change()

    async def _change(self) -> None:
        self._changed.clear()
        await self._changed.wait()

    @property
    def status(self) -> Status:
        """How the host is."""
        look = self.parts.look()
        return Status(
            **{name: getattr(look, name) for name in _LOOKED},
            edges=len(self.edges),
            edges_expected=self._edges_expected,
        )

    def on_timer(self) -> None:
        """The wheel's call: tell gateways what has changed, and look who waits for a change."""
        self._changed.set()
        status = self.status
        if status != self._status:
            self._status = status
            for edge in self.edges.values():
                edge.end.outbox.put(status)
        if self._group is not None:
            self._wheel.set(self, self._clock.now() + STATUS_S)

    # For the ends

    def receive(self, arrival: Wanted) -> Joined | Coming:
        """Receive a client, or a request that wants a slot."""
        if isinstance(arrival, Slot):
            return partial(held_slot, self.parts.slots, arrival)
        if isinstance(arrival, LookingOn):
            edge = self._holder(arrival.call_id, arrival.owner)
            return partial(edge.end.open, arrival)
        return self.parts.sessions.receive(arrival)

    async def hang_up(self, question: AskHangUp) -> Reply:
        """Have a call ended by the gateway that holds it."""
        return await self._holder(question.call_id, question.owner).end.ask(question)

    def take_request(self, owner_name: str) -> float:
        """Count a request with a key."""
        rate = self.parts.rates.get(owner_name)
        return 0.0 if rate is None else rate.take(self._clock.now())

    async def figures(self) -> list[ProcessFigures]:
        """Return the figures of this process and all gateways."""
        own = await self.parts.figures(self.parts.name)
        return [own, *await asyncio.gather(*[edge.figures() for edge in self.edges.values()])]

    # Private

    def _holder(self, call_id: str, owner: Owner) -> EdgeOfHost:
        edge, whose = self.calls.get(call_id, (None, None))
        if edge is None or whose != owner:
            raise unknown_call(call_id)
        return edge

    def _link(self) -> Link:
        handshake = HostHandshake(
            self.parts.name, self.parts.version, self._secret, secrets.token_bytes
        )
        return Link(handshake, self._made, self._gone, self._clock, self._wheel, self._links.add)

    def _made(self, link: Link, outbox: Outbox) -> LinkEnd:
        assert self._group is not None
        edge = EdgeOfHost(self, link.peer, outbox, self._limits, self._group, self._clock)
        self.edges[link] = edge
        outbox.put(self.status)
        self._changed.set()
        self._log.info("edge_joined", edge=link.peer, edges=len(self.edges))
        return edge.end

    def _gone(self, link: Link, why: str) -> None:
        self._links.discard(link)
        edge = self.edges.pop(link, None)
        if edge is None:
            return
        edge.lost()
        for call_id, (holder, _) in list(self.calls.items()):
            if holder is edge:
                del self.calls[call_id]
        self._changed.set()
        self._log.info("edge_left", edge=edge.name, edges=len(self.edges), reason=why)


def _private_socket(path: Path) -> socket.socket:
    """Return a socket at a path, in place of that of a host that was killed."""
    with suppress(FileNotFoundError):
        path.unlink()
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        sock.bind(str(path))
    finally:
        os.umask(before)
    return sock


_LOOKED = tuple(
    name for name in Status.__struct_fields__ if name not in ("edges", "edges_expected")
)


class EdgeOfHost:
    """One gateway; what stands behind this end of its link."""

    def __init__(
        self,
        host: HostServer,
        name: str,
        outbox: Outbox,
        limits: LinkSettings,
        group: asyncio.TaskGroup,
        clock: Clock,
    ) -> None:
        self.name = name
        self.end = LinkEnd(self, outbox, limits, group)
        self.engine = ServedEngine(host.parts.engine, name, outbox.put, clock)
        self.answers = ServedAnswers(host.parts.answers)
        self.receive = host.receive
        self._host = host

    def lost(self) -> None:
        """It is gone."""
        self.engine.lost()
        self.answers.lost()

    async def figures(self) -> ProcessFigures:
        """Ask for its figures; none where it does not answer."""
        with suppress(DuologueError, TimeoutError):
            async with asyncio.timeout(FIGURES_TIMEOUT_S):
                reply = await self.end.ask(AskFigures())
                if isinstance(reply, Figures) and reply.processes:
                    return ProcessFigures(self.name, reply.processes[0].figures)
        return ProcessFigures(self.name, [])

    async def answer(self, question: Question) -> Reply:
        """Answer a question."""
        host = self._host
        match question:
            case AskPreview(model=model, patch=patch):
                session = await host.parts.sessions.preview(model, patch)
                return Previewed(pack_event(SessionUpdated(session=session)))
            case AskLook():
                return Looked(await host.parts.sessions.look())
            case AskRequest(owner_name=name):
                return Waits(host.take_request(name))
            case AskHangUp():
                return await host.hang_up(question)
            case AskFigures():
                return Figures([await host.parts.figures(host.parts.name)])
            case AskAllFigures():
                return Figures(await host.figures())
            case _ if isinstance(question, JobQuestion):
                return await answer_about_jobs(host.parts.jobs, question)
            case _ if isinstance(question, LifecycleQuestion):
                return await answer_about_stages(host.parts.lifecycle, question)
            case _ if isinstance(question, AnswerQuestion):
                return await self.answers.answer(question)

    def unsent(self, message: ToEngine | FromEngine, why: str) -> None:
        """An output of a request was too long for the link."""
        if isinstance(message, FromEngine):
            self.engine.unsent(message, why)

    def hear(self, message: OfLink | ToEngine | FromEngine) -> None:
        """Take what concerns no channel."""
        match message:
            case CallBegan(call_id=call_id, owner=owner):
                self._host.calls[call_id] = self, owner
            case CallEnded(call_id=call_id):
                self._host.calls.pop(call_id, None)
            case AnswerFailed(key=key):
                self.answers.failed(key)
            case _ if isinstance(message, ToEngine):
                self.engine.receive(message)
            case _:
                pass  # a sign of life
