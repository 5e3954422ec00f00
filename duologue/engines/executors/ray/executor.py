"""Workers as processes on whichever machine of a Ray cluster has room for them.

Ray finds the machine, sets aside what the worker takes and says when it is lost; frames travel on
a connection of the engine's own, large payloads from whoever wrote them to whoever reads them. This
module must not know Ray, nor runners.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import cast

from duologue.core.errors import EngineError
from duologue.engines.executors.base import WorkerListener
from duologue.engines.executors.linked import (
    STALL_S,
    Lines,
    LinkedWorker,
    LinkProtocol,
)
from duologue.engines.executors.ray.door import Purpose, come_in
from duologue.engines.executors.ray.driver_link import DriverLink
from duologue.engines.executors.ray.messages import Birth, Find, Join
from duologue.engines.messages import Placement, WorkerSpec
from duologue.engines.settings import RaySettings
from duologue.engines.transport.choice import BETWEEN_HOSTS, choose_transport
from duologue.engines.transport.remote_engine import RemoteEnd, RemotePayloads
from duologue.engines.transport.remote_seat import RemoteSeat

DRIVER = (sys.executable, "-u", "-P", "-m", "duologue.engines.executors.ray.driver")
COME_IN_S = 10.0
"""Time in which a worker's machine must have let the engine in, and started it."""

ANSWER_S = 5.0
"""Time in which Ray must have said what became of a worker that was to be killed."""

_SECRET_BYTES = 32
_FORWARDED = ("HF_", "NCCL_", "TORCH_NCCL_", "UCX_", "VLLM_")
_FORWARDED_NAMES = ("CUDA_LAUNCH_BLOCKING", "DUOLOGUE_CACHE", "OMP_NUM_THREADS", "PYTHONPATH")
_OF_THIS_MACHINE = ("VLLM_HOST_IP",)


def forwarded(environ: Mapping[str, str]) -> dict[str, str]:
    """Return what a worker on another machine is told of this one's environment.

    How libraries are to work; never which devices there are, who belongs to a group of processes,
    where this machine is, nor what Ray sets.
    """
    return {
        name: value
        for name, value in environ.items()
        if (name.startswith(_FORWARDED) or name in _FORWARDED_NAMES)
        and name not in _OF_THIS_MACHINE
    }


class RayExecutor:
    """Starts processes in a cluster.

    The cluster is joined with the first worker. Where there is none, none is made: the start fails.

    Args:
        driver: The program that joins it.
        stall_s: As of ``ProcessExecutor``.
    """

    def __init__(
        self, settings: RaySettings, driver: Sequence[str] = DRIVER, stall_s: float = STALL_S
    ) -> None:
        self.stall_s = stall_s
        self._settings = settings
        self._program = driver
        self._driver: DriverLink | None = None
        self._joining: asyncio.Event | None = None
        self._remote = RemotePayloads()

    @property
    def held_bytes(self) -> int:
        """Large payloads that were not read by all who shall."""
        return self._remote.held_bytes

    @property
    def fill(self) -> float:
        """How full the fullest place for them is; what finds no room goes with the messages."""
        return self._remote.fill

    async def start(self, spec: WorkerSpec, listener: WorkerListener) -> LinkedWorker:
        """Find a place for a worker, and start it there.

        Raises:
            EngineError: There is no cluster, no room in it, or no way to the worker.
        """
        driver = await self._joined()
        loop = asyncio.get_running_loop()
        end = self._enlist(spec)
        worker = LinkedWorker(spec, listener, self.stall_s, end)
        secret = secrets.token_bytes(_SECRET_BYTES)
        attempt = _Attempt(driver, worker)
        birth = _birth_of(spec, None if end is None else end.workers_seat)
        attempt.begin(lambda id: Find(id, spec.placement or _alone(spec.name), birth, secret))
        try:
            host, port = await attempt.place
            async with asyncio.timeout(COME_IN_S):
                link = await come_in(host, port, secret, Purpose.LINK)
                if end is not None:
                    # The address by which the worker's machine has just found this one.
                    await asyncio.to_thread(end.open_at, link.getsockname()[0])
                await loop.create_connection(lambda: LinkProtocol(worker), sock=link)
                output = await come_in(host, port, secret, Purpose.OUTPUT)
                await loop.create_connection(lambda: attempt.output, sock=output)
                await attempt.birth
        except TimeoutError as exc:
            attempt.give_up()
            _leave(end)
            raise EngineError(
                f"the machine of {spec.name} did not let the engine in within {COME_IN_S:g} s"
            ) from exc
        except BaseException:
            attempt.give_up()
            _leave(end)
            raise
        worker.take_handle(attempt)
        worker.listen()
        return worker

    def _enlist(self, spec: WorkerSpec) -> RemoteEnd | None:
        transport = choose_transport(
            "ray", spec.transport, room_bytes=spec.slab_bytes, interpreter=spec.interpreter
        )
        if transport not in BETWEEN_HOSTS:
            return None
        return self._remote.enlist(transport, spec.name, spec.slab_bytes, spec.relays)

    async def close(self) -> None:
        """Give all places back, and leave the cluster."""
        driver, self._driver = self._driver, None
        if driver is not None:
            await driver.close()

    async def _joined(self) -> DriverLink:
        while self._joining is not None:  # whoever began may fail or give up
            await self._joining.wait()
        if self._driver is not None and self._driver.is_up:
            return self._driver
        self._joining = asyncio.Event()
        try:
            await self.close()
            driver = DriverLink()
            settings = self._settings
            await driver.join(
                self._program,
                dict(os.environ),
                Join(settings.address, settings.place_timeout_s),
                settings.join_timeout_s,
            )
            self._driver = driver
            return driver
        finally:
            self._joining.set()
            self._joining = None


class _Attempt:
    """One order to the driver, and from its success on what holds the worker's process.

    Implements ``Finding`` and ``ProcessHandle``.
    """

    def __init__(self, driver: DriverLink, worker: LinkedWorker) -> None:
        loop = asyncio.get_running_loop()
        self.place: asyncio.Future[tuple[str, int]] = loop.create_future()
        self.birth: asyncio.Future[None] = loop.create_future()
        self.output = _Output(worker)
        self._driver = driver
        self._worker = worker
        self._id = 0
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, order_of: Callable[[int], Find]) -> None:
        """Give the order."""
        self._id = self._driver.find(order_of, self)

    def give_up(self) -> None:
        """Want no worker any more; whatever there is of it shall end."""
        self._worker.close()
        self.output.close()
        self._driver.kill(self._id)
        self._driver.forget(self._id)
        for future in (self.place, self.birth):
            if future.done() and not future.cancelled():
                future.exception()  # seen, whether somebody waited for it or not
            future.cancel()

    # Finding

    def found(self, host: str, port: int) -> None:
        self.place.set_result((host, port))

    def born(self) -> None:
        self.birth.set_result(None)

    def gone(self, how: str) -> None:
        for future in (self.place, self.birth):
            if not future.done():
                future.set_exception(EngineError(f"{self._worker.name}: {how}"))
        self._worker.exited(how)

    # ProcessHandle

    def kill(self) -> None:
        self._driver.kill(self._id)
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(ANSWER_S, self._stop_waiting)

    def release(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self.output.close()
        self._driver.forget(self._id)

    def _stop_waiting(self) -> None:
        # A worker without a link to its engine exits by itself, as soon as it can.
        self._worker.close()
        self._worker.exited(f"Ray did not say what became of it within {ANSWER_S:g} s")


class _Output(asyncio.Protocol):
    """What a worker on another machine prints."""

    def __init__(self, worker: LinkedWorker) -> None:
        self._worker = worker
        self._lines = Lines(worker.printed)
        self._line: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._line = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._lines.feed(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._worker.output_ended()

    def close(self) -> None:
        if self._line is not None:
            self._line.abort()


def _birth_of(spec: WorkerSpec, seat: RemoteSeat | None) -> Birth:
    return Birth(
        name=spec.name,
        env={**forwarded(os.environ), **spec.env},
        interpreter=spec.interpreter,
        seat=seat,
    )


def _leave(end: RemoteEnd | None) -> None:
    if end is not None:
        end.worker_died()


def _alone(name: str) -> Placement:
    """A place for a worker that belongs to nothing: one core, wherever there is one."""
    return Placement(group=name, strategy="PACK", bundles=({"CPU": 1.0},), index=0)
