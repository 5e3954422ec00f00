"""The engine's end of the process that drives the cluster: orders out, news in.

This module must not know workers' messages, nor Ray.
"""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, cast

import structlog

from duologue.core.errors import EngineError
from duologue.engines import framing
from duologue.engines.executors.child import Child
from duologue.engines.executors.ray import messages

log = structlog.get_logger(__name__)

LEAVE_S = 5.0
"""Time that the driver has to give everything back; then it is killed, and Ray does it."""


class Finding(Protocol):
    """Hears what becomes of one order to find a place."""

    def found(self, host: str, port: int) -> None:
        """Somebody listens there for the engine."""
        ...

    def born(self) -> None:
        """The worker's process runs."""
        ...

    def gone(self, how: str) -> None:
        """There is nothing, or no longer. The last call."""
        ...


class DriverLink(asyncio.Protocol):
    """The driver's process.

    Concurrency:
        Belongs to the event loop.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._link: asyncio.Transport | None = None
        self._child = Child(self._printed)
        self._frames = framing.FrameReader()
        self._tail: deque[str] = deque(maxlen=1)
        self._findings: dict[int, Finding] = {}
        self._joined: asyncio.Future[None] = self._loop.create_future()
        self._next_id = 0

    @property
    def is_up(self) -> bool:
        """It takes orders."""
        return self._link is not None and not self._link.is_closing()

    async def join(
        self,
        program: Sequence[str],
        environ: Mapping[str, str],
        order: messages.Join,
        timeout_s: float,
    ) -> None:
        """Start the process, and let it join the cluster.

        Raises:
            EngineError: The cluster is not there, or not in time.
        """
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                await self._loop.create_unix_connection(lambda: self, sock=ours)
                await self._child.start(program, theirs, environ)
            self._say(order)
            async with asyncio.timeout(timeout_s):
                await self._joined
        except BaseException as exc:
            if self._link is None:
                ours.close()
            self._child.kill()
            await self.close()
            if isinstance(exc, TimeoutError):
                raise EngineError(
                    f"the Ray cluster at {order.address!r} was not joined within {timeout_s:g} s; "
                    "is its head there, and this machine part of it ('ray start')?"
                ) from exc
            raise

    def find(self, order_of: Callable[[int], messages.Find], finding: Finding) -> int:
        """Order a place for a worker; returns the number of the order."""
        self._next_id += 1
        self._findings[self._next_id] = finding
        self._say(order_of(self._next_id))
        return self._next_id

    def kill(self, id: int) -> None:
        """Order an end; ``gone`` of its finding follows."""
        if id in self._findings:
            self._say(messages.Kill(id))

    def forget(self, id: int) -> None:
        """Hear no more of an order."""
        self._findings.pop(id, None)

    async def close(self) -> None:
        """Let the driver give everything back and leave; kill it where that takes too long."""
        if self._link is not None:
            self._link.close()
        try:
            async with asyncio.timeout(LEAVE_S):
                await self._child.ended()
        except TimeoutError:
            log.warning("ray_driver_killed", limit_s=LEAVE_S)
            self._child.kill()
            await self._child.ended()
        self._child.release()

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Orders can be given."""
        self._link = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Pass the news on."""
        for body in self._frames.feed(data):
            for news in messages.decode_news(body):
                self._take(news)

    def connection_lost(self, exc: Exception | None) -> None:
        """All that it held is gone: Ray ends the actors of a driver that is."""
        how = "the Ray driver is gone"
        if self._tail:
            how = f"{how}: {self._tail[-1]}"
        findings, self._findings = self._findings, {}
        for finding in findings.values():
            finding.gone(how)
        if not self._joined.done():
            self._joined.set_exception(EngineError(how))

    # Private

    def _take(self, news: messages.FromDriver) -> None:
        match news:
            case messages.Joined():
                self._joined.set_result(None)
            case messages.NotJoined(reason=reason):
                self._joined.set_exception(EngineError(reason))
            case messages.Found(id=id, host=host, port=port) if id in self._findings:
                self._findings[id].found(host, port)
            case messages.Born(id=id) if id in self._findings:
                self._findings[id].born()
            case messages.Gone(id=id, how=how) if id in self._findings:
                self._findings.pop(id).gone(how)
            case _:
                pass  # of an order that was forgotten

    def _say(self, order: messages.ToDriver) -> None:
        if self._link is not None and not self._link.is_closing():
            self._link.write(framing.encode_messages([order]))

    def _printed(self, line: str) -> None:
        self._tail.append(line)
        log.debug("ray_driver_output", **{"pii.line": line})
