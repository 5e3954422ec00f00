"""What any such end does; those that move payloads are held to it by their own tests."""

from __future__ import annotations

import asyncio

from duologue.engines import framing
from duologue.engines.media_payloads import ImageData
from duologue.engines.messages import Apart, Append, Cancel, Freed, JobEnded, Report
from duologue.engines.ports import Outcome
from duologue.engines.transport.beside_link import BesideLink
from duologue.engines.transport.port import Handle
from tests.fakes.object_store import ObjectStore

ROOM = 2**20


class End(BesideLink):
    """Writes to a store of objects, and reads nothing."""

    def __init__(self, *, with_store: bool = True) -> None:
        super().__init__(ROOM, relays=False)
        self.objects = ObjectStore(ROOM)
        if with_store:
            self._store = self.objects
        self.let_go = 0
        self.written: list[bytes] = []
        self.heard: list[Report] = []
        self.link_made(self.written.append, self.heard.append)

    def handles(self, size_bytes: int) -> tuple[Handle, ...]:
        """Let it say something large; returns where that lies."""
        image = ImageData(b"x" * size_bytes, "png", 8, 8)
        found: list[Handle] = []
        for body in framing.FrameReader().feed(self.encode([Append("a", image)])):
            if body[0] == framing.APART:
                apart = framing.decode_apart(body)
                assert isinstance(apart, Apart)
                found += (part.handle for part in apart.parts)
        return tuple(found)

    def read(self, *handles: Handle) -> None:
        self._read_freed(Freed(handles))

    def fail(self, job: str) -> Report:
        return self._fail(job, "payload_lost", "gone")

    def lend(self, handle: Handle) -> object:
        return self._lend(handle)

    def _stop(self) -> None:
        self.objects.close()

    def _let_go(self) -> None:
        self.let_go += 1


async def test_what_was_given_is_unread_until_the_worker_says_so() -> None:
    end = End()
    handles = end.handles(300_000)
    assert (end.given_bytes, end.unread_bytes, end.held_bytes) == (300_000,) * 3
    assert end.fill == 300_000 / ROOM
    end.read(*handles, *handles)
    assert (end.given_bytes, end.unread_bytes, end.held_bytes) == (300_000, 0, 0)


async def test_without_a_store_everything_stays_within() -> None:
    end = End(with_store=False)
    assert end.handles(300_000) == ()
    assert end.held_bytes == 0


async def test_the_end_of_a_job_of_which_something_was_lost_is_told_to_both_sides() -> None:
    end = End()
    assert end.fail("a").messages == [JobEnded("a", Outcome.FAILED, "payload_lost", "gone")]
    assert end.written == [framing.encode_messages([Cancel("a")])]


async def test_nobody_lets_go_of_it_before_the_last_of_its_payloads_came_back() -> None:
    end = End()
    lent = end.lend(Handle("there", 0, 1, 400_000))
    assert end.held_bytes == 400_000
    end.worker_died()
    end.worker_died()
    assert (end.let_go, end.held_bytes) == (0, 400_000)
    del lent
    await asyncio.sleep(0)
    assert (end.let_go, end.held_bytes) == (1, 0)
    assert end.written == [], "the worker that is dead is told nothing"


async def test_reports_are_heard_as_they_come() -> None:
    report = Report([])
    assert End().hold_back(report) is report
