from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from duologue.clients.errors import CallEnded, CallError, ConnectionLost, SessionGone
from duologue.clients.reconnect.doors import Place
from duologue.clients.reconnect.events import CallLost, Reconnected, Reconnecting
from duologue.clients.reconnect.policy import ReconnectPolicy
from duologue.clients.reconnect.transport import ReconnectingTransport
from duologue.clients.transports.base import Received
from duologue.core.errors import AuthError, CapacityError, DuologueError
from duologue.protocol.append_audio import AppendPlacedAudio
from duologue.protocol.commands import ClearAudio, CommitAudio
from duologue.protocol.duplex.commands import CloseSession
from duologue.protocol.duplex.events import InputAccepted, SessionClosed, SessionResumed
from duologue.protocol.duplex.session_patch import DuplexPatch
from duologue.protocol.duplex.session_resource import DuplexSessionResource
from duologue.protocol.events import (
    AudioCleared,
    ErrorEvent,
    Event,
    ResumableSessionCreated,
)
from tests.fakes.call import FakeCall
from tests.fakes.clock import FakeClock
from tests.fakes.plugin import FakePlugin
from tests.fakes.server import FakeTransport, refusal
from tests.patience import PATIENCE_S

POLICY = ReconnectPolicy(silence_s=0.2, give_up_s=10, first_wait_s=0.5, longest_wait_s=2)


def session() -> DuplexSessionResource:
    resource = FakeCall(FakePlugin(), patch=DuplexPatch()).machine.resource()
    assert isinstance(resource, DuplexSessionResource)
    return resource


SESSION = session()


def created() -> ResumableSessionCreated:
    return ResumableSessionCreated(session=SESSION, resume_token="one", attachment_generation=1)


def resumed(
    next_sample: int = 0, last_event_id: str | None = None, token: str = "two"
) -> SessionResumed:
    return SessionResumed(
        session_id=SESSION.id,
        session=SESSION,
        attachment_generation=2,
        resume_token=token,
        next_sample=next_sample,
        last_event_id=last_event_id,
    )


class FakeDoor:
    """Opens what a test has put there, in turn."""

    acknowledges = True

    def __init__(self) -> None:
        self.next: deque[FakeTransport | DuologueError] = deque()
        self.asked: list[Place] = []

    def put(self, *events: Event) -> FakeTransport:
        transport = FakeTransport(*events)
        self.next.append(transport)
        return transport

    async def open(self, place: Place) -> tuple[FakeTransport, Received]:
        self.asked.append(place)
        found = self.next.popleft()
        if isinstance(found, DuologueError):
            raise found
        return found, Received((await found.receive()).event, None)


class Scene:
    def __init__(self, *greeting: Event) -> None:
        self.clock = FakeClock(100.0)
        self.waits: list[float] = []
        self.first = FakeTransport(*(greeting or (created(),)))
        self.door = FakeDoor()
        self.line = ReconnectingTransport(
            self.first, self.door, POLICY, self.clock, random.Random(1), self._sleep
        )

    async def _sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.clock.advance(seconds)

    async def event(self) -> object:
        async with asyncio.timeout(PATIENCE_S):
            return (await self.line.receive()).event


@asynccontextmanager
async def greeted() -> AsyncIterator[Scene]:
    scene = Scene()
    await scene.line.send(ClearAudio(event_id="opening"))
    assert isinstance(await scene.event(), ResumableSessionCreated)
    yield scene
    await scene.line.close()


async def test_a_lost_line_is_dialled_again_and_the_rest_is_sent() -> None:
    async with greeted() as scene:
        line = scene.line
        said = [AppendPlacedAudio(audio=bytes(20), start_sample=n) for n in (0, 10, 20)]
        for command in (said[0], CommitAudio(event_id="c1"), said[1], said[2]):
            await line.send(command)
        scene.first.say(AudioCleared(), ConnectionLost("gone"))
        second = scene.door.put(resumed(next_sample=10, last_event_id="c1"), AudioCleared())
        assert isinstance(await scene.event(), AudioCleared)
        assert await scene.event() == Reconnecting(attempt=1, wait_s=scene_wait(), because="gone")
        assert scene.first.closed
        assert not line.is_up
        assert isinstance(await scene.event(), SessionResumed)
        assert scene.door.asked == [Place(SESSION.id, "one", 2)]
        back = await scene.event()
        assert isinstance(back, Reconnected)
        assert (back.attempts, back.sent_again, back.dropped_ms) == (1, 2, 0)
        assert back.gap_s == pytest.approx(scene.waits[0])
        assert second.sent == said[1:]
        assert line.is_up
        # The next outage shows the next token.
        second.say(ConnectionLost("again"))
        scene.door.put(resumed(token="three"))
        assert isinstance(await scene.event(), AudioCleared)
        assert isinstance(await scene.event(), Reconnecting)
        assert isinstance(await scene.event(), SessionResumed)
        assert scene.door.asked[1].token == "two"


def scene_wait() -> float:
    return random.Random(1).uniform(0.0, POLICY.first_wait_s)


async def test_a_line_that_takes_nothing_is_given_up_for_another() -> None:
    async with greeted() as scene:
        await scene.line.send(CommitAudio(event_id="c1"))
        scene.first.say(ConnectionLost("gone"))
        hole = scene.door.put(resumed())
        hole.stuck = True
        good = scene.door.put(resumed(token="three"))
        assert isinstance(await scene.event(), Reconnecting)
        again = await scene.event()
        assert isinstance(again, Reconnecting)
        assert (again.attempt, again.because) == (2, "the server takes nothing")
        assert hole.closed
        assert isinstance(await scene.event(), SessionResumed)
        assert good.sent == [CommitAudio(event_id="c1")]
        assert scene.door.asked[1].token == "two", "the first one has been used"


async def test_what_is_said_in_the_gap_waits_and_follows_what_was_lost() -> None:
    async with greeted() as scene:
        await scene.line.send(CommitAudio(event_id="c1"))
        scene.first.say(ConnectionLost("gone"))
        assert isinstance(await scene.event(), Reconnecting)
        second = scene.door.put(resumed())
        async with asyncio.TaskGroup() as group:
            group.create_task(scene.line.send(ClearAudio(event_id="c2")))
            await asyncio.sleep(0)
            assert isinstance(await scene.event(), SessionResumed)
        assert [command.event_id for command in second.sent] == ["c1", "c2"]


async def test_what_the_server_has_accepted_is_forgotten() -> None:
    async with greeted() as scene:
        await scene.line.send(AppendPlacedAudio(audio=bytes(20), start_sample=0))
        scene.first.say(InputAccepted(next_sample=10, missing_samples=0))
        await scene.event()
        assert scene.line.log.held_bytes == 0


@pytest.mark.parametrize(
    "failure",
    [
        ConnectionLost("no"),
        CapacityError("full", retry_after_s=1.5),
        CallEnded("away", close_code=1013),
    ],
    ids=["unreachable", "full", "closed"],
)
async def test_attempts_go_on_until_one_comes_about(failure: DuologueError) -> None:
    async with greeted() as scene:
        scene.first.say(CallEnded("restarting", close_code=1012))
        scene.door.next.append(failure)
        scene.door.put(refusal(None, "server_full"))
        scene.door.put(resumed())
        tries = [await scene.event() for _ in range(3)]
        assert [t.attempt for t in tries if isinstance(t, Reconnecting)] == [1, 2, 3]
        assert isinstance(await scene.event(), SessionResumed)
        if isinstance(failure, CapacityError):
            assert scene.waits[1] == 1.5
        assert scene.waits[2] >= 1.0


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (refusal(None, "session_resume_expired"), "session_resume_expired"),
        (AuthError("expired", code="invalid_api_key"), "invalid_api_key"),
    ],
    ids=["refused", "key"],
)
async def test_a_refusal_ends_the_call_and_says_why(
    answer: ErrorEvent | AuthError, code: str
) -> None:
    async with greeted() as scene:
        scene.first.say(ConnectionLost("gone"))
        if isinstance(answer, AuthError):
            scene.door.next.append(answer)
        else:
            scene.door.put(answer)
        assert isinstance(await scene.event(), Reconnecting)
        lost = await scene.event()
        assert isinstance(lost, CallLost)
        assert lost.code == "session_gone"
        for _ in range(2):
            with pytest.raises(SessionGone) as gone:
                await scene.event()
            assert gone.value.refused_with == code


@pytest.mark.parametrize(
    "end",
    [
        CallEnded("bye"),
        CallEnded("replaced", close_code=4001),
        CallEnded("policy", close_code=1008),
    ],
)
async def test_a_call_that_was_ended_on_purpose_is_not_dialled_again(end: CallError) -> None:
    async with greeted() as scene:
        scene.first.say(end)
        with pytest.raises(CallEnded) as ended:
            await scene.event()
        assert ended.value is end


async def test_nothing_is_dialled_before_there_is_a_session() -> None:
    scene = Scene(AudioCleared())
    await scene.event()
    scene.first.say(ConnectionLost("gone"))
    with pytest.raises(ConnectionLost):
        await scene.event()


async def test_nor_after_the_session_was_closed() -> None:
    async with greeted() as scene:
        await scene.line.send(CloseSession())
        scene.first.say(ConnectionLost("gone"))
        with pytest.raises(ConnectionLost):
            await scene.event()
    async with greeted() as scene:
        scene.first.say(SessionClosed(session_id=SESSION.id, reason="bye"))
        await scene.event()
        scene.first.say(CallEnded("away", close_code=1001))
        with pytest.raises(CallEnded):
            await scene.event()


async def test_who_answers_with_something_else_is_asked_again() -> None:
    async with greeted() as scene:
        scene.first.say(ConnectionLost("gone"))
        scene.door.put(AudioCleared())
        stuck = scene.door.put(resumed())
        await scene.event()
        again = await scene.event()
        assert isinstance(again, Reconnecting)
        assert again.because == "the server did not go on with the session"
        assert isinstance(await scene.event(), SessionResumed)
        assert not stuck.closed
