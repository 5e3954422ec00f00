"""A host at the other end, as far as a gateway can tell without asking."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from duologue.core.clock import SystemClock
from duologue.core.errors import CapacityError, DuologueError, UnknownSession
from duologue.hosts.messages import Beat, CallBegan, CallEnded, Status
from duologue.hosts.outbox import Outbox
from duologue.hosts.port import LookingOn, Opening
from duologue.hosts.questions import AskFigures, AskHangUp, AskLook, Done, Figures
from duologue.hosts.remote_host import RemoteHost
from duologue.hosts.settings import LinkSettings
from duologue.protocol.errors import ErrorCode
from duologue.sessions.owners import ANYBODY
from tests.unit.hosts.small_host import figures


class Scene:
    def __init__(self) -> None:
        self.host = RemoteHost(["llm"], LinkSettings(), SystemClock(), figures)
        self.outbox = Outbox(lambda: None)

    def join(self, status: Status) -> None:
        self.host.joined("host", self.outbox, cast(Any, None))
        self.host.hear(status)
        self.host.hear(Beat())


def refusal(check: Any) -> str:
    with pytest.raises(CapacityError) as caught:
        check()
    return caught.value.code


async def test_without_a_link_it_refuses_all() -> None:
    host = Scene().host
    assert refusal(host.check_room) == refusal(host.check_loaded) == ErrorCode.HOST_LOST
    assert refusal(lambda: host.begin(Opening())) == ErrorCode.HOST_LOST
    for attempt in (host.open(Opening()), host.look(), host.take("key-1")):
        with pytest.raises(CapacityError):
            await attempt
    host.call_began("rtc_1", ANYBODY)
    host.leave("closed")


async def test_it_is_as_it_was_last_heard_to_be() -> None:
    scene = Scene()
    scene.join(Status(loaded=False))
    assert refusal(scene.host.check_loaded) == ErrorCode.NOT_READY
    scene.host.hear(Status(loaded=True, sessions=2, max_sessions=2))
    scene.host.check_loaded()
    assert refusal(scene.host.check_room) == ErrorCode.SERVER_FULL
    scene.host.hear(Status(loaded=True, sessions=2, max_sessions=2, detached=1))
    scene.host.check_room()
    scene.host.hear(Status(loaded=True, sessions=1, max_sessions=2, waiting=3))
    with pytest.raises(CapacityError, match="3 calls wait"):
        scene.host.check_room()
    scene.host.lost()
    assert refusal(scene.host.check_room) == ErrorCode.HOST_LOST


async def test_a_host_that_comes_again_hears_of_the_calls_that_are_held() -> None:
    scene = Scene()
    scene.host.call_began("rtc_1", ANYBODY)
    scene.host.call_began("rtc_2", ANYBODY)
    scene.host.call_ended("rtc_2")
    scene.join(Status())
    assert scene.outbox.take() == [CallBegan("rtc_1", ANYBODY)]
    scene.host.call_ended("rtc_1")
    assert scene.outbox.take() == [CallEnded("rtc_1")]


async def test_a_gateway_answers_for_its_figures_and_its_calls_alone() -> None:
    host = Scene().host
    reply = await host.answer(AskFigures())
    assert isinstance(reply, Figures)
    with pytest.raises(DuologueError):
        await host.answer(AskLook())
    with pytest.raises(DuologueError):
        await host.answer(AskHangUp("rtc_1", ANYBODY))
    with pytest.raises(UnknownSession):
        host.receive(LookingOn(call_id="rtc_1"))
    with pytest.raises(UnknownSession):
        host.receive(Opening())
    assert Done() == Done()


async def test_who_waits_for_a_state_of_it_waits_through_a_loss() -> None:
    scene = Scene()
    waiting = asyncio.create_task(scene.host.wait_status(lambda status: status.loaded))
    await asyncio.sleep(0)
    scene.join(Status())
    scene.host.lost()
    await asyncio.sleep(0)
    assert not waiting.done()
    scene.join(Status(loaded=True))
    await waiting
