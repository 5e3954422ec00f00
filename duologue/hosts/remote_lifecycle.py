"""The stages of session hosts elsewhere, as a ``LifecyclePort``; of one, and of several as one.

This module must not know links, nor how an order is carried out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable

import msgspec

from duologue.core.errors import DuologueError
from duologue.engines.lifecycle_port import EngineLook, LifecyclePort, Order, StageAck
from duologue.hosts.faults import host_lost
from duologue.hosts.lifecycle_questions import (
    Acknowledged,
    AskOrder,
    AskStages,
    LifecycleQuestion,
    LifecycleReply,
    StagesSeen,
)
from duologue.hosts.questions import Question, Reply


async def answer_about_stages(
    lifecycle: LifecyclePort | None, question: LifecycleQuestion
) -> LifecycleReply:
    """Answer a question, at the host.

    Raises:
        DuologueError: As ``LifecyclePort``; or there are no stages here.
    """
    if lifecycle is None:
        raise DuologueError("this session host has no stages")
    match question:
        case AskOrder(order=order):
            return Acknowledged(await lifecycle.carry_out(order))
        case AskStages():
            return StagesSeen(await lifecycle.look())


class RemoteLifecycle:
    """A ``LifecyclePort``: the stages of one host.

    Args:
        ask: Asks the host; raises ``DuologueError`` where there is no answer.
    """

    def __init__(self, ask: Callable[[Question], Awaitable[Reply]]) -> None:
        self._ask = ask

    async def carry_out(self, order: Order) -> list[StageAck]:
        """Have an order carried out."""
        reply = await self._ask(AskOrder(order))
        assert isinstance(reply, Acknowledged), "each kind of question has one kind of answer"
        return reply.acks

    async def look(self) -> list[EngineLook]:
        """Return what its stages look like."""
        reply = await self._ask(AskStages())
        assert isinstance(reply, StagesSeen)
        return reply.engines


class FleetLifecycle:
    """A ``LifecyclePort``: the stages of all hosts, which have the same ones.

    Args:
        hosts: Returns those that can be reached, each with its name.
    """

    def __init__(self, hosts: Callable[[], Iterable[tuple[str, LifecyclePort]]]) -> None:
        self._hosts = hosts

    async def carry_out(self, order: Order) -> list[StageAck]:
        """Have an order carried out at every host, side by side."""
        hosts = self._reached()
        answers = await asyncio.gather(*[host.carry_out(order) for _, host in hosts])
        return [
            msgspec.structs.replace(ack, host=name)
            for (name, _), acks in zip(hosts, answers, strict=True)
            for ack in acks
        ]

    async def look(self) -> list[EngineLook]:
        """Return what the stages of every host look like."""
        hosts = self._reached()
        answers = await asyncio.gather(*[host.look() for _, host in hosts])
        return [
            msgspec.structs.replace(engine, host=name)
            for (name, _), engines in zip(hosts, answers, strict=True)
            for engine in engines
        ]

    def _reached(self) -> list[tuple[str, LifecyclePort]]:
        hosts = list(self._hosts())
        if not hosts:
            raise host_lost()
        return hosts
