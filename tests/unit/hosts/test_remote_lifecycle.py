from __future__ import annotations

import pytest

from duologue.core.errors import CapacityError, DuologueError
from duologue.engines.lifecycle_port import EngineLook, Order, SleepStages, StageAck
from duologue.engines.pools.start_report import StartReport
from duologue.hosts.lifecycle_questions import AskOrder, AskStages
from duologue.hosts.questions import Question, Reply
from duologue.hosts.remote_lifecycle import (
    FleetLifecycle,
    RemoteLifecycle,
    answer_about_stages,
)

ACK = StageAck(task_id="task_1", status="SUCCESS", stage_id="llm", rank=0, level=2)
LOOK = EngineLook(stages=[], start=StartReport(1.0, 2.0, []))


class Stages:
    """An engine's."""

    def __init__(self) -> None:
        self.orders: list[Order] = []

    async def carry_out(self, order: Order) -> list[StageAck]:
        self.orders.append(order)
        return [ACK]

    async def look(self) -> list[EngineLook]:
        return [LOOK]


def linked(stages: Stages | None) -> RemoteLifecycle:
    """The gateway's end, and the host's at once."""

    async def ask(question: Question) -> Reply:
        assert isinstance(question, AskOrder | AskStages)
        return await answer_about_stages(stages, question)

    return RemoteLifecycle(ask)


async def test_an_order_reaches_the_host_and_its_answer_comes_back() -> None:
    stages = Stages()
    remote = linked(stages)
    order = SleepStages(level=1)
    assert await remote.carry_out(order) == [ACK]
    assert stages.orders == [order]
    assert await remote.look() == [LOOK]


async def test_a_host_without_stages_says_so() -> None:
    with pytest.raises(DuologueError, match="no stages"):
        await linked(None).look()


async def test_all_hosts_are_told_and_each_answer_says_whose_it_is() -> None:
    one, two = Stages(), Stages()
    fleet = FleetLifecycle(lambda: [("a", linked(one)), ("b", linked(two))])
    order = SleepStages()
    assert [ack.host for ack in await fleet.carry_out(order)] == ["a", "b"]
    assert one.orders == two.orders == [order]
    assert [look.host for look in await fleet.look()] == ["a", "b"]


async def test_without_a_host_there_is_nobody_to_tell() -> None:
    with pytest.raises(CapacityError):
        await FleetLifecycle(list).carry_out(SleepStages())
