"""Starts the parts of a server in several processes, and again what dies or hangs; stops all.

This module must not know what the parts do.
"""

from __future__ import annotations

import asyncio
import secrets
import signal
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from duologue.clients.reconnect.line_watch import LineWatch, Verdict
from duologue.commands.backoff import Backoff
from duologue.composition.listening import chosen_tls, why_not_listening
from duologue.composition.orders import (
    EdgeOrder,
    HostDrained,
    HostOrder,
    HostReady,
    LoopTurns,
    Order,
    PartReport,
    TakesConnections,
    read_report,
    write_line,
)
from duologue.core.clock import Clock, SystemClock
from duologue.core.errors import ConfigError
from duologue.core.ids import id_maker
from duologue.engines.pools.start_report import lines
from duologue.gateway.settings import GatewaySettings
from duologue.hosts.routing import TAG_CHARS
from duologue.settings import Settings
from duologue.telemetry import get_logger

STOP_S = 10.0
"""A part that has been told to go, and is still there after so long beyond its own time-outs, is
killed."""

STEP_ASIDE_S = 1.0
"""A gateway is started again no earlier where others serve: its calls come back to those, and what
starts takes a core meanwhile."""

LOOK_S = 0.5
"""How often is looked whether the loops of all parts turn."""

CONFIG_EXIT = 2
"""Exit status of a part whose settings cannot be used: to start it again would not help. The same
is true of any other failure before the server was ready once."""


class Part:
    """One process.

    Args:
        order: What it is told first.
        command: Starts it.
        on_report: Hears what it reports.
        silence_s: One that is up and reports nothing for so long stands still.
        now: Tells the time.
    """

    def __init__(
        self,
        order: Order,
        command: Sequence[str],
        on_report: Callable[[Part, PartReport], None],
        silence_s: float,
        now: Callable[[], float],
    ) -> None:
        self.order = order
        self.pid: int | None = None
        self.silence_s = silence_s
        self._command = command
        self._on_report = on_report
        self._now = now
        self._process: asyncio.subprocess.Process | None = None
        self._watch: LineWatch | None = None

    async def run(self) -> int:
        """Run it once; returns its exit status."""
        # In a session of its own: Ctrl-C at a terminal is for the supervisor alone.
        process = await asyncio.create_subprocess_exec(
            *self._command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        self._process, self.pid = process, process.pid
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(write_line(self.order))
            async for line in process.stdout:
                if (report := read_report(line)) is not None:
                    self._heard()
                    self._on_report(self, report)
            return await process.wait()
        finally:
            self._process = self.pid = self._watch = None

    def stands_still(self) -> bool:
        """Look whether its loop turns, every ``LOOK_S``; says so once if it does not."""
        watch = self._watch
        if watch is None or watch.look(self._now()) is not Verdict.DEAD:
            return False
        self._watch = None
        return True

    def tell(self, number: signal.Signals) -> None:
        """Send a signal, if it runs."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.send_signal(number)

    def _heard(self) -> None:
        """It is up, and its loop turns."""
        now = self._now()
        if self._watch is None:
            self._watch = LineWatch(self.silence_s, now)
        self._watch.heard(now)


class Supervisor:
    """All parts of one server.

    Args:
        command: Starts a part.
        say: Tells whoever started the server.

    Concurrency:
        Belongs to the event loop.
    """

    def __init__(
        self,
        settings: Settings,
        command: Sequence[str],
        say: Callable[[str], None],
        clock: Clock | None = None,
    ) -> None:
        self._settings = settings
        self._command = command
        self._say = say
        self._clock = clock or SystemClock()
        self._listening: dict[Part, str] = {}
        self._host_ready = False
        self._ready = asyncio.Event()
        self._drained = asyncio.Event()
        self._stopping = asyncio.Event()
        self._failed: int | None = None
        self._over = asyncio.Event()
        self.host: Part | None = None
        self.edges: list[Part] = []
        self._log = get_logger("supervisor")

    async def run(self, stop: asyncio.Event, stop_now: asyncio.Event) -> int:
        """Run the server until ``stop``; returns the exit status.

        Raises:
            ConfigError: The settings cannot be used.
        """
        gateway = self._settings.gateway
        chosen_tls(self._settings, self._clock.wall_time())  # made once, before all parts want it
        with (
            tempfile.TemporaryDirectory(prefix="duologue-") as folder,
            _reserved(gateway) as port,
        ):
            self._make_parts(Path(folder) / "host.sock", port)
            async with asyncio.TaskGroup() as group:
                keepers = [
                    group.create_task(self._keep(part), name=f"part-{part.order.name}")
                    for part in self._parts
                ]
                announcing = group.create_task(self._announce(), name="announce")
                watching = group.create_task(self._watch(), name="watch")
                ending = group.create_task(self._over.wait(), name="over")
                stopping = group.create_task(stop.wait(), name="stop")
                await asyncio.wait((ending, stopping), return_when=asyncio.FIRST_COMPLETED)
                announcing.cancel()
                watching.cancel()
                hurry = group.create_task(self._hurry(stop_now), name="hurry")
                drained = group.create_task(self._drained.wait(), name="drained")
                await self._stop(keepers, drained, gateway.drain_timeout_s)
                for task in (ending, stopping, hurry, drained):
                    task.cancel()
        return 0 if self._failed is None else self._failed

    def _make_parts(self, path: Path, port: int) -> None:
        count = self._settings.hosts.edges
        key = secrets.token_urlsafe(32)
        hosts = self._settings.hosts
        if hosts.role == "host":
            count = 0
        if hosts.role != "gateways":
            tag = id_maker()("")[1 : 1 + TAG_CHARS] if hosts.directory_url is not None else ""
            self.host = self._part(HostOrder(name="host", socket=str(path), edges=count, tag=tag))
        self.edges = [
            self._part(
                EdgeOrder(
                    name=f"edge-{index}",
                    index=index,
                    socket="" if self.host is None else str(path),
                    port=port,
                    signing_key=key,
                )
            )
            for index in range(count)
        ]

    @property
    def _parts(self) -> list[Part]:
        """All of them, the host first."""
        return [*([] if self.host is None else [self.host]), *self.edges]

    def _part(self, order: Order) -> Part:
        hosts = self._settings.hosts
        is_host = isinstance(order, HostOrder)
        silence_s = hosts.host_silence_s if is_host else hosts.edge_silence_s
        return Part(order, self._command, self._heard, silence_s, self._clock.now)

    async def _keep(self, part: Part) -> None:
        """Run a part, and run it again when it dies, later after each loss in a row."""
        backoff = Backoff()
        while not self._stopping.is_set():
            began = self._clock.now()
            status = await part.run()
            self._listening.pop(part, None)
            if part is self.host:
                self._host_ready = False
            if self._stopping.is_set():
                return
            if status == CONFIG_EXIT or (status > 0 and not self._ready.is_set()):
                self._failed = status
                self._over.set()
                return
            wait_s = backoff.after(self._clock.now() - began)
            if part is not self.host and any(edge in self._listening for edge in self.edges):
                wait_s = max(wait_s, STEP_ASIDE_S)
            self._log.error("part_died", part=part.order.name, status=status, again_in_s=wait_s)
            await asyncio.sleep(wait_s)

    def _heard(self, part: Part, report: PartReport) -> None:
        match report:
            case TakesConnections(url=url):
                self._listening[part] = url
            case HostReady(start=start):
                self._host_ready = True
                for line in lines(start):
                    self._say(line)
            case HostDrained():
                self._drained.set()
            case LoopTurns():
                return
        has_host = self._host_ready or self.host is None
        if has_host and len(self._listening) == len(self.edges):
            self._ready.set()

    async def _watch(self) -> None:
        """Kill what hangs: it is given connections all the same, and its clients hear nothing."""
        while True:
            await asyncio.sleep(LOOK_S)
            for part in self._parts:
                if part.stands_still():
                    self._log.error(
                        "part_stands_still", part=part.order.name, limit_s=part.silence_s
                    )
                    part.tell(signal.SIGKILL)

    async def _announce(self) -> None:
        await self._ready.wait()
        url = next(iter(self._listening.values()), "a session host without gateways")
        self._say(f"ready: {url}  (Ctrl-C stops)")

    async def _stop(
        self,
        keepers: Sequence[asyncio.Task[None]],
        drained: asyncio.Task[bool],
        drain_s: float,
    ) -> None:
        """First the host, whose calls may finish; then gateways say goodbye; then all is over."""
        self._stopping.set()
        self._say("stopping: calls may finish; Ctrl-C again ends them now")
        if self.host is not None:
            self.host.tell(signal.SIGTERM)
            await asyncio.wait(
                (drained, keepers[0]),
                timeout=2 * drain_s + STOP_S,
                return_when=asyncio.FIRST_COMPLETED,
            )
        drained.cancel()
        for edge in self.edges:
            edge.tell(signal.SIGTERM)
        _, left = await asyncio.wait(keepers, timeout=STOP_S + drain_s)
        if left:
            self._log.error("parts_killed", parts=len(left))
            for part in self._parts:
                part.tell(signal.SIGKILL)

    async def _hurry(self, stop_now: asyncio.Event) -> None:
        await stop_now.wait()
        if self.host is not None:
            self.host.tell(signal.SIGTERM)


@contextmanager
def _reserved(gateway: GatewaySettings) -> Iterator[int]:
    """Keep the port that all gateways share, while this lasts.

    A socket that is bound and does not listen takes no connections, and lets gateways that come
    again find the port free.

    Raises:
        ConfigError: It cannot be had.
    """
    if not hasattr(socket, "SO_REUSEPORT"):
        raise ConfigError("hosts.edges needs SO_REUSEPORT, which this system does not have")
    family = socket.AF_INET6 if ":" in gateway.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as kept:
        try:
            if gateway.port:
                _refuse_taken(family, gateway)
            kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            kept.bind((gateway.host, gateway.port))
        except OSError as exc:
            raise ConfigError(why_not_listening(gateway, exc)) from exc
        yield kept.getsockname()[1]


def _refuse_taken(family: socket.AddressFamily, gateway: GatewaySettings) -> None:
    """Another server of ours would share the port, and each would get half of the calls."""
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((gateway.host, gateway.port))


def part_command(arguments: Sequence[str]) -> list[str]:
    """Return what starts a part with the arguments that the server was started with."""
    return [sys.executable, "-m", "duologue", *arguments, "--part"]
