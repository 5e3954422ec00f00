"""The process that drives the cluster for an engine: finds places, starts workers, sees their ends.

``python -m duologue.engines.executors.ray.driver FD PARENT``. A process of its own, since Ray ends
its driver when the cluster's head is gone for a minute: that must not be the process with the
calls. This module must not know Ray; ``cluster`` does.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import Callable
from typing import Protocol

from duologue.core.errors import EngineError
from duologue.core.parent import die_with_parent
from duologue.engines import framing
from duologue.engines.executors.ray import messages
from duologue.engines.messages import Placement

LEAVE_S = 4.0
"""Time in which actors and reservations are given back when the engine stops."""


class Actor(Protocol):
    """A ``Holder`` on some machine of the cluster. Errors are ``EngineError``."""

    async def listen(self) -> tuple[str, int]:
        """Open a door there; returns where."""
        ...

    async def bear(self, birth: messages.Birth, secret: bytes) -> None:
        """Let the engine in and start the worker."""
        ...

    async def wait(self) -> str:
        """Return how the worker ended; raises where the actor itself is lost."""
        ...

    async def kill(self) -> None:
        """Be rid of it, and so of its worker. Raises nothing."""
        ...


class Cluster(Protocol):
    """A cluster, as its driver sees it. Errors are ``EngineError``."""

    async def join(self, address: str) -> None:
        """Become part of it."""
        ...

    async def reserve(self, placement: Placement) -> None:
        """Wait until all that a group takes is set aside; once it is, that is at once."""
        ...

    async def give_up(self, placement: Placement) -> str:
        """Want a group no longer that was not found in time; returns what there is instead.

        Raises nothing.
        """
        ...

    async def start(self, placement: Placement) -> Actor:
        """Start an actor at a place that was set aside."""
        ...

    async def leave(self) -> None:
        """Give everything back."""
        ...


class Driver:
    """Carries out an engine's orders.

    Args:
        say: Sends news to the engine.

    Concurrency:
        Belongs to the event loop; each worker is a task of ``group``.
    """

    def __init__(
        self, cluster: Cluster, say: Callable[[messages.FromDriver], None], group: asyncio.TaskGroup
    ) -> None:
        self._cluster = cluster
        self._say = say
        self._group = group
        self._place_timeout_s = 0.0
        self._lives: dict[int, asyncio.Task[None]] = {}

    async def join(self, order: messages.Join) -> bool:
        """Join the cluster; returns whether that went well."""
        self._place_timeout_s = order.place_timeout_s
        try:
            await self._cluster.join(order.address)
        except EngineError as exc:
            self._say(messages.NotJoined(exc.message))
            return False
        self._say(messages.Joined())
        return True

    def take(self, order: messages.Find | messages.Kill) -> None:
        """Begin to carry out an order."""
        match order:
            case messages.Find(id=id):
                task = self._group.create_task(self._live(order), name=order.birth.name)
                self._lives[id] = task
            case messages.Kill(id=id):
                if (life := self._lives.get(id)) is not None:
                    life.cancel()

    async def leave(self) -> None:
        """End all workers, and give everything back."""
        lives = list(self._lives.values())
        for life in lives:
            life.cancel()
        if lives:
            await asyncio.wait(lives)
        await self._cluster.leave()

    async def _live(self, order: messages.Find) -> None:
        actor: Actor | None = None
        reserved = False
        how = "it was killed"
        try:
            async with asyncio.timeout(self._place_timeout_s):
                await self._cluster.reserve(order.placement)
                reserved = True
                actor = await self._cluster.start(order.placement)
                host, port = await actor.listen()
            self._say(messages.Found(order.id, host, port))
            await actor.bear(order.birth, order.secret)
            self._say(messages.Born(order.id))
            how = await actor.wait()
        except TimeoutError:
            if reserved:
                how = f"its actor did not start within {self._place_timeout_s:g} s"
            else:
                how = await self._cluster.give_up(order.placement)
        except EngineError as exc:
            how = exc.message
        finally:
            del self._lives[order.id]
            if actor is not None:
                await actor.kill()
            self._say(messages.Gone(order.id, how))


async def drive(cluster: Cluster, link: socket.socket) -> None:
    """Carry out what comes on a link, until it ends."""
    reader, writer = await asyncio.open_connection(sock=link)
    frames = framing.FrameReader()

    def say(news: messages.FromDriver) -> None:
        writer.write(framing.encode_messages([news]))

    joined = False
    async with asyncio.TaskGroup() as group:
        driver = Driver(cluster, say, group)
        while data := await reader.read(65536):
            for body in frames.feed(data):
                for order in messages.decode_orders(body):
                    if isinstance(order, messages.Join):
                        joined = await driver.join(order)
                    elif joined:
                        driver.take(order)
        # Whoever could take more is gone, so this process may be as well when the time is over.
        asyncio.get_running_loop().call_later(LEAVE_S, os._exit, 1)
        if joined:
            await driver.leave()
    writer.close()


def main(make_cluster: Callable[[], Cluster]) -> None:
    """Be a driver until the engine says no more, or is gone."""
    die_with_parent(int(sys.argv[2]))
    link = socket.socket(fileno=int(sys.argv[1]))
    link.set_inheritable(False)
    asyncio.run(drive(make_cluster(), link))


if __name__ == "__main__":
    from duologue.engines.executors.ray.cluster import RayCluster

    main(RayCluster)
