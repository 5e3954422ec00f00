"""Several hosts, as far as can be told without asking them; the rest is in tests/cases."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from duologue.core.clock import SystemClock
from duologue.core.errors import CapacityError, UnknownSession
from duologue.hosts.fleet import HostFleet
from duologue.hosts.messages import CallBegan, CallEnded, OpenChannel, Status
from duologue.hosts.outbox import Outbox
from duologue.hosts.port import InTurn, LateOpening, LookingOn, Opening, Return
from duologue.hosts.remote_host import RemoteHost
from duologue.hosts.settings import LinkSettings
from duologue.protocol.duplex.commands import ResumeSession
from duologue.protocol.errors import ErrorCode
from duologue.protocol.session_patch import SessionPatch
from duologue.sessions.owners import ANYBODY
from tests.unit.hosts.small_host import figures


class Member(RemoteHost):
    def __init__(self, status: Status | None = None) -> None:
        super().__init__(["llm"], LinkSettings(), SystemClock(), figures)
        self.outbox = Outbox(lambda: None)
        if status is not None:
            self.joined("host", self.outbox, cast(Any, None))
            self.hear(status)


def room(free: int, **how: Any) -> Status:
    return Status(loaded=True, sessions=8 - free, max_sessions=8, **how)


def refusal(check: Any) -> str:
    with pytest.raises(CapacityError) as caught:
        check()
    return caught.value.code


async def test_without_a_host_nothing_begins() -> None:
    fleet = HostFleet(None, ["llm"])
    assert refusal(fleet.check_room) == refusal(fleet.check_loaded) == ErrorCode.HOST_LOST
    assert refusal(lambda: fleet.begin(Opening())) == ErrorCode.HOST_LOST
    for attempt in (
        fleet.open(Opening()),
        fleet.open(Return(session_id="s", resume_token="t")),
        fleet.take("key-1"),
        fleet.preview(None, SessionPatch()),
    ):
        with pytest.raises(CapacityError):
            await attempt
    for missing in (fleet.hang_up("rtc_1", ANYBODY), fleet.open(LookingOn(call_id="rtc_1"))):
        with pytest.raises(UnknownSession):
            await missing
    assert await fleet.look() == await fleet.all_figures() == []
    assert fleet.engine.has_pipeline("llm")


def test_a_refusal_is_that_of_a_host_that_is_there() -> None:
    fleet = HostFleet(Member(), ["llm"])
    fleet.add(Member(room(0)))
    assert refusal(fleet.check_room) == ErrorCode.SERVER_FULL
    fleet.check_loaded()
    fleet.add(Member(room(1)))
    fleet.check_room()
    assert len(fleet) == 15
    assert fleet.accepting
    assert fleet.status.max_sessions == 16


def test_a_phone_call_goes_where_there_is_most_room() -> None:
    full, roomy = Member(room(1)), Member(room(5))
    fleet = HostFleet(full, ["llm"])
    fleet.add(roomy)
    fleet.begin(Opening())
    assert len(roomy.outbox.take()) == 1
    assert full.outbox.take() == []


async def test_a_client_goes_to_the_host_that_has_what_an_earlier_start_has_left() -> None:
    async with asyncio.TaskGroup() as group:
        roomy, heir = Member(room(5)), Member(room(1, tag="second", earlier_tags=("first0",)))
        fleet = HostFleet(roomy, ["llm"])
        fleet.add(heir)
        back = Return(session_id="sess_first0_1", resume_token="t")
        late = LateOpening(opening=Opening(), timeout_s=5.0)
        command = ResumeSession(
            session_id="sess_first0_1", resume_token="t", last_received_server_event_seq=0
        )
        going = [
            group.create_task(attempt)  # type: ignore[arg-type]
            for attempt in (fleet.open(back), fleet._late_at(late, command))
        ]
        await asyncio.sleep(0)
        assert [type(message) for message in heir.outbox.take()] == [OpenChannel, OpenChannel]
        assert roomy.outbox.take() == []
        for task in going:
            task.cancel()


async def test_a_call_waits_at_the_host_where_the_fewest_do() -> None:
    async with asyncio.TaskGroup() as group:
        long, short = Member(room(0, waiting=3)), Member(room(0, waiting=1))
        fleet = HostFleet(long, ["llm"])
        fleet.add(short)
        in_turn = InTurn(opening=Opening(), timeout_s=9.0)
        waiting = group.create_task(fleet.open(in_turn))
        await asyncio.sleep(0)
        assert [type(message) for message in short.outbox.take()] == [OpenChannel]
        assert long.outbox.take() == []
        # Somebody has left meanwhile: another one need not wait.
        short.hear(room(1))
        going = group.create_task(fleet.open(in_turn))
        await asyncio.sleep(0)
        (message,) = short.outbox.take()
        assert message.arrival == Opening()  # type: ignore[union-attr]
        for task in (waiting, going):
            task.cancel()


def test_every_host_knows_of_the_calls_that_are_held_here() -> None:
    first, second = Member(room(1)), Member(room(1))
    fleet = HostFleet(first, ["llm"])
    fleet.call_began("rtc_1", ANYBODY)
    fleet.add(second)
    fleet.call_ended("rtc_1")
    for host in (first, second):
        assert host.outbox.take() == [CallBegan("rtc_1", ANYBODY), CallEnded("rtc_1")]
    holder = cast(Any, object())
    fleet.calls = holder
    assert first.calls is second.calls is fleet.calls is holder
    fleet.remove(second)
    fleet.leave("closed")
    assert fleet.members == [first]
