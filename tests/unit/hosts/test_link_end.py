from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from duologue.core.errors import CapacityError, DuologueError, ProtocolError
from duologue.hosts import link_end
from duologue.hosts.messages import Beat, Opened
from duologue.hosts.port import LookingOn, Opening
from duologue.hosts.questions import AskLook, Done, Reply, Waits
from duologue.protocol.commands import ClearAudio
from duologue.protocol.errors import ErrorCode
from duologue.protocol.events import AudioCleared
from duologue.sessions.port import Joined
from tests.fakes.link import FakeClient, FakeLink, FakeSession


@asynccontextmanager
async def joined() -> AsyncIterator[FakeLink]:
    async with asyncio.TaskGroup() as group:
        yield FakeLink(group)


async def settled(link: FakeLink) -> None:
    for _ in range(4):
        link.settle()
        await asyncio.sleep(0)
    link.settle()


async def test_who_waits_for_the_session_gets_it_or_the_reason() -> None:
    async with joined() as link, asyncio.TaskGroup() as group:
        opening = group.create_task(link.edge.open(Opening()))
        await settled(link)
        assert opening.result().id == "sess_0"
        link.host_server.refuses = ProtocolError("no", code="invalid_value", param="session.x")
        refused = group.create_task(refusal(link.edge.open(Opening())))
        await settled(link)
        exc = refused.result()
        assert isinstance(exc, ProtocolError)
        assert exc.param == "session.x"
    assert link.edge.is_busy


async def refusal(attempt: object) -> DuologueError:
    with pytest.raises(DuologueError) as caught:
        await attempt  # type: ignore[misc]
    return caught.value


async def test_who_gives_up_while_it_is_opened_leaves_nothing_open() -> None:
    async with joined() as link:
        opening = asyncio.create_task(link.edge.open(Opening()))
        await asyncio.sleep(0)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        await settled(link)
        assert link.host_server.sessions[0].closed == "client_gone"
        assert not link.edge.is_busy
        assert not link.host.is_busy


async def test_what_takes_time_to_be_found_is_served_then() -> None:
    async with joined() as link, asyncio.TaskGroup() as group:
        found = FakeSession("rtc_1")

        async def find() -> Joined:
            await asyncio.sleep(0)
            return found

        link.host_server.later = find
        opening = group.create_task(link.edge.open(LookingOn(call_id="rtc_1")))
        await settled(link)
        client = FakeClient(opening.result())
        opening.result().attach(client)
        opening.result().offer(ClearAudio())
        await settled(link)
        found.say(AudioCleared())
        await settled(link)
        assert found.said == [ClearAudio()]
        assert [delivery.event for delivery in client.got] == [AudioCleared()]


async def test_who_is_about_to_be_let_in_when_the_gateway_lets_go_is_told_to_come_again() -> None:
    async with joined() as link, asyncio.TaskGroup() as group:
        opening = group.create_task(refusal(link.edge.open(Opening())))
        await asyncio.sleep(0)
        link.edge.leave("server_shutting_down")
        await settled(link)
        exc = opening.result()
        assert isinstance(exc, CapacityError)
        assert (exc.code, exc.retry_after_s > 0) == ("server_shutting_down", True)
        assert not link.host.is_busy


class Search:
    """Something that takes time to be opened, and keeps whoever leaves in mind."""

    def __init__(self) -> None:
        self.begun = 0
        self.given_up = 0

    async def __call__(self) -> Joined:
        self.begun += 1
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.given_up += 1
            raise
        raise AssertionError


async def test_what_takes_time_may_be_refused_in_the_end() -> None:
    async with joined() as link:

        async def find_none() -> Joined:
            raise CapacityError("none", retry_after_s=1.0)

        link.host_server.later = find_none
        refused = link.edge.begin(LookingOn(call_id="rtc_2"))
        client = FakeClient(refused)
        refused.attach(client)
        await settled(link)
        assert client.ended == "server_full"


@pytest.mark.parametrize("how", ["is lost", "closes", "closes at once"])
async def test_what_takes_time_is_given_up_when_nobody_waits_for_it_any_more(how: str) -> None:
    async with joined() as link:
        search = Search()
        link.host_server.later = search
        port = link.edge.begin(LookingOn(call_id="rtc_1"))
        if how == "closes at once":
            port.close("client_gone")
        await settled(link)
        begun = 0 if how == "closes at once" else 1
        assert (search.begun, search.given_up) == (begun, 0)
        if how == "is lost":
            link.host.lost()
        elif how == "closes":
            port.close("client_gone")
        await settled(link)
        assert search.given_up == begun
        assert not link.host.is_busy


async def test_an_answer_to_one_who_has_left_goes_to_whom_he_has_named() -> None:
    async with joined() as link:
        link.host_server.reply = Waits(1.5)
        unwanted: list[Reply] = []
        for refuses in (None, CapacityError("full", retry_after_s=2.0)):
            link.host_server.refuses = refuses
            asking = asyncio.create_task(link.edge.ask(AskLook(), unwanted.append))
            await asyncio.sleep(0)
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            await settled(link)
            await settled(link)
        assert unwanted == [Waits(1.5)]


async def test_questions_are_answered_either_way() -> None:
    async with joined() as link, asyncio.TaskGroup() as group:
        link.host_server.reply = Waits(1.5)
        up = group.create_task(link.edge.ask(AskLook()))
        down = group.create_task(link.host.ask(AskLook()))
        await settled(link)
        assert (up.result(), down.result()) == (Waits(1.5), Done())
        link.host_server.refuses = CapacityError("full", retry_after_s=2.0)
        failed = group.create_task(refusal(link.edge.ask(AskLook())))
        await settled(link)
        assert isinstance(failed.result(), CapacityError)


async def test_there_is_an_end_to_how_much_may_be_asked_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(link_end, "MAX_QUESTIONS", 1)
    async with joined() as link, asyncio.TaskGroup() as group:
        first = group.create_task(link.edge.ask(AskLook()))
        second = group.create_task(refusal(link.edge.ask(AskLook())))
        await settled(link)
        assert first.result() == Done()
        assert second.result().code == ErrorCode.HOST_LOST


async def test_a_lost_link_ends_everything_and_opens_nothing() -> None:
    async with joined() as link, asyncio.TaskGroup() as group:
        asked = group.create_task(refusal(link.edge.ask(AskLook())))
        opening = group.create_task(refusal(link.edge.open(Opening())))
        await asyncio.sleep(0)
        link.edge.lost()
        await asyncio.sleep(0)
        assert asked.result().code == opening.result().code == ErrorCode.HOST_LOST
        assert (await refusal(link.edge.open(Opening()))).code == ErrorCode.HOST_LOST
        assert (await refusal(link.edge.ask(AskLook()))).code == ErrorCode.HOST_LOST


async def test_what_concerns_no_channel_is_handed_on_and_what_nobody_knows_left_alone() -> None:
    async with joined() as link:
        link.host.take([Beat(), Opened(99, "sess")])
        assert link.host_server.heard == [Beat()]
        assert link.host.outbox.take() == []
