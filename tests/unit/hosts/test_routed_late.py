from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from duologue.core.errors import AuthError
from duologue.hosts.routed_late import RoutedLate
from duologue.protocol.commands import ClearAudio, UpdateSession
from duologue.protocol.duplex.commands import ResumeSession
from duologue.protocol.errors import error_body
from duologue.protocol.events import AudioCleared
from duologue.protocol.session_patch import SessionPatch
from duologue.sessions.port import Joined
from tests.fakes.link import FakeClient, FakeSession, until

RESUME = ResumeSession(session_id="sess_abc123_x", resume_token="t", event_id="e1")
UPDATE = UpdateSession(session=SessionPatch())


class Scene:
    def __init__(self, group: asyncio.TaskGroup) -> None:
        self.here, self.there = FakeSession("here"), FakeSession("there")
        self.answer: Joined | Exception | None = self.there
        self.release = asyncio.Event()
        self.late = RoutedLate(self.here, self._find, group)
        self.client = FakeClient(self.late)
        self.late.attach(self.client)

    async def _find(self, _command: ResumeSession) -> Joined | None:
        await self.release.wait()
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@asynccontextmanager
async def scene() -> AsyncIterator[Scene]:
    async with asyncio.TaskGroup() as group:
        yield Scene(group)


async def test_who_goes_on_with_a_session_of_another_host_is_moved_there_in_order() -> None:
    async with scene() as made:
        made.late.offer(RESUME)
        made.late.offer(ClearAudio())
        assert made.there.said == []
        made.release.set()
        await until(lambda: made.there.said)
        assert made.there.said == [RESUME, ClearAudio()]
        assert (made.here.said, made.here.detached) == ([], 1)
        made.there.say(AudioCleared())
        assert len(made.client.got) == 1
        made.late.offer(ClearAudio())
        made.late.played("a", 1)
        made.late.reject(error_body(AuthError("no")))
        assert made.there.said[-1] == ClearAudio()
        assert made.there.heard == {"a": 1}
        made.late.detach(made.client)
        assert made.there.detached == 1


async def test_who_begins_a_session_stays() -> None:
    async with scene() as made:
        made.late.offer(UPDATE)
        made.late.offer(RESUME)
        assert made.here.said == [UPDATE, RESUME]
        made.late.close("closed")
        assert made.here.closed == "closed"


async def test_a_session_that_no_other_host_has_is_asked_for_here() -> None:
    async with scene() as made:
        made.answer = None
        made.late.offer(RESUME)
        made.release.set()
        await until(lambda: made.here.said)
        assert made.here.said == [RESUME]


async def test_a_refusal_there_is_an_answer_here() -> None:
    async with scene() as made:
        made.answer = AuthError("no", code="invalid_resume_token")
        made.late.offer(RESUME)
        made.late.offer(UPDATE)
        made.release.set()
        await until(lambda: made.here.said)
        (error,) = made.here.rejected
        assert (error.code, error.event_id) == ("invalid_resume_token", "e1")
        assert made.here.said == [UPDATE]


async def test_who_left_meanwhile_takes_nothing_over() -> None:
    async with scene() as made:
        made.late.offer(RESUME)
        made.late.detach(made.client)
        made.release.set()
        await until(lambda: made.there.closed)
        assert made.there.said == []


async def test_a_bug_on_the_way_ends_this_client_alone() -> None:
    async with scene() as made:
        made.answer = ZeroDivisionError()
        made.late.offer(RESUME)
        made.release.set()
        await until(lambda: made.client.ended)
        assert made.client.ended == "server_error"
