"""Both ends of links with a slab, without a socket between them."""

from __future__ import annotations

import asyncio
import os

import msgspec

from duologue.engines import framing
from duologue.engines.media_payloads import ImageData
from duologue.engines.messages import (
    Apart,
    Append,
    Cancel,
    Freed,
    JobEnded,
    JobOutput,
    Report,
    ToWorker,
)
from duologue.engines.ports import Outcome
from duologue.engines.transport.apart import LEAST_BYTES, Lent
from duologue.engines.transport.memory_file import MemoryFile
from duologue.engines.transport.slab_engine import EngineEnd, SharedSlab
from duologue.engines.transport.slab_worker import WorkerEnd

SIZE = 2**20


def image(number: int, size: int = 300_000) -> ImageData:
    return ImageData(bytes([number]) * size, "png", 8, 8)


async def settle() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


def bodies(frames: bytes) -> list[bytes]:
    return framing.FrameReader().feed(frames)


class Line:
    """A link between the two ends; what is written arrives at once, unless it is held up."""

    def __init__(self, slab: SharedSlab, relays: bool = False, size_bytes: int = SIZE) -> None:
        self.engine: EngineEnd = slab.enlist(size_bytes, relays)
        assert slab.memory is not None
        self.worker = WorkerEnd(MemoryFile(os.dup(slab.memory.fd)), self.engine.seat)
        self.engine.link_made(self.to_worker, self.hear)
        self.worker_got: list[ToWorker] = []
        self.engine_got: list[object] = []
        self.sizes: list[int] = []
        self.to_engine_held_up: list[bytes] | None = None

    def send(self, *messages: ToWorker) -> None:
        self.to_worker(self.engine.encode(messages))

    def hear(self, report: Report) -> None:
        self.engine_got += report.messages

    def say(self, *messages: object, step_s: float = 0.0) -> None:
        self.to_engine(self.worker.encode(Report(list(messages), step_s)))  # type: ignore[arg-type]

    def to_worker(self, frames: bytes) -> None:
        self.sizes.append(len(frames))
        for body in bodies(frames):
            if body[0] == framing.APART:
                messages, answer = self.worker.take(body)
                self.worker_got += messages
                self.to_engine(answer)
            else:
                self.worker_got += framing.decode_messages(body)

    def to_engine(self, frames: bytes) -> None:
        if self.to_engine_held_up is not None:
            self.to_engine_held_up.append(frames)
            return
        self.sizes.append(len(frames))
        for body in bodies(frames):
            report = (
                self.engine.take(body) if body[0] == framing.APART else framing.decode_report(body)
            )
            if report is not None:
                self.engine_got += report.messages

    def let_through(self) -> None:
        frames, self.to_engine_held_up = self.to_engine_held_up or [], None
        for each in frames:
            self.to_engine(each)


async def test_large_payloads_go_beside_the_link_both_ways_and_nothing_is_held() -> None:
    slab = SharedSlab()
    line = Line(slab)
    for number in range(50):
        line.send(Append("a", image(number)), Cancel("b"))
        line.say(JobOutput("a", image(number)), JobEnded("a", Outcome.COMPLETED), step_s=0.5)
    assert line.worker_got == [
        each for number in range(50) for each in (Append("a", image(number)), Cancel("b"))
    ]
    assert line.engine_got == [
        each
        for number in range(50)
        for each in (JobOutput("a", image(number)), JobEnded("a", Outcome.COMPLETED))
    ]
    assert max(line.sizes) < 200
    assert slab.held_bytes == 0
    line.engine.worker_died()


async def test_how_long_a_step_took_is_said_once() -> None:
    line = Line(SharedSlab())
    frames = bodies(line.worker.encode(Report([JobOutput("a", image(1))], 0.5)))
    reports = [framing.decode_report(each) for each in frames if each[0] != framing.APART]
    assert [each.step_s for each in reports] == [0.5]
    line.engine.worker_died()


async def test_what_finds_no_room_goes_in_the_link_and_later_there_is_room_again() -> None:
    line = Line(SharedSlab())
    line.to_engine_held_up = []
    many = [Append("a", image(number, 300_000)) for number in range(8)]
    line.send(*many)
    assert line.worker_got == many
    assert line.sizes[-1] > 5 * 300_000
    line.let_through()
    line.send(many[0])
    assert line.sizes[-2] < 200
    line.engine.worker_died()


async def test_small_messages_are_as_they_were() -> None:
    line = Line(SharedSlab())
    message = Append("a", image(1, LEAST_BYTES // 2))
    assert line.engine.encode([message]) == framing.encode_messages([message])
    report = Report([JobOutput("a", image(1, LEAST_BYTES // 2))], 0.25)
    assert line.worker.encode(report) == framing.encode(report)
    line.engine.worker_died()


async def test_a_payload_that_cannot_be_read_fails_its_job_and_the_worker_is_told() -> None:
    line = Line(SharedSlab())
    frames = line.worker.encode(Report([JobOutput("a", image(1))]))
    gone = _stale(frames)
    line.to_engine(gone)
    (ended,) = line.engine_got
    assert isinstance(ended, JobEnded)
    assert (ended.outcome, ended.code) == (Outcome.FAILED, "payload_lost")
    assert line.worker_got == [Cancel("a")]
    line.engine.worker_died()


async def test_an_input_that_cannot_be_read_fails_its_job_likewise() -> None:
    line = Line(SharedSlab())
    line.to_worker(_stale(line.engine.encode([Append("a", image(1))])))
    assert line.worker_got == [Cancel("a")]
    (ended,) = line.engine_got
    assert isinstance(ended, JobEnded)
    assert (ended.outcome, ended.code) == (Outcome.FAILED, "payload_lost")
    line.engine.worker_died()


async def test_a_release_that_comes_twice_or_from_nowhere_does_no_harm() -> None:
    slab = SharedSlab()
    line = Line(slab)
    line.to_engine_held_up = []
    line.send(Append("a", image(1)))
    (freed,) = line.to_engine_held_up
    line.let_through()
    line.to_engine(freed)
    line.to_engine_held_up = []
    line.send(Append("a", image(2)))
    held = slab.held_bytes
    line.engine.take(bodies(freed)[0])
    assert slab.held_bytes == held > 0
    line.let_through()
    assert slab.held_bytes == 0
    line.engine.worker_died()


class TestRelays:
    async def test_what_one_worker_wrote_is_read_by_the_next_and_by_nobody_between(self) -> None:
        slab = SharedSlab()
        first, second = Line(slab, relays=True), Line(slab)
        first.say(JobOutput("a", image(7)))
        (output,) = first.engine_got
        assert isinstance(output, JobOutput)
        assert isinstance(output.payload, ImageData)
        assert isinstance(output.payload.data, Lent)
        assert len(output.payload.data) == 300_000
        first.engine_got.clear()
        second.send(Append("a", output.payload))
        del output
        assert second.worker_got == [Append("a", image(7))]
        assert max(first.sizes + second.sizes) < 200
        await settle()
        assert slab.held_bytes == 0
        for line in (first, second):
            line.engine.worker_died()
        assert slab.memory is None

    async def test_what_the_engine_drops_is_freed(self) -> None:
        slab = SharedSlab()
        line = Line(slab, relays=True)
        for number in range(100):
            line.say(JobOutput("a", image(number)))
            line.engine_got.clear()
            await settle()
        assert max(line.sizes) < 200, "there was always room"
        assert slab.held_bytes == 0
        line.engine.worker_died()

    async def test_it_outlives_the_worker_that_wrote_it(self) -> None:
        slab = SharedSlab()
        first, second = Line(slab, relays=True), Line(slab)
        first.say(JobOutput("a", image(7)))
        output = first.engine_got.pop()
        assert isinstance(output, JobOutput)
        first.engine.worker_died()
        third = Line(slab, relays=True)
        assert third.engine.seat.from_worker != first.engine.seat.from_worker
        third.say(JobOutput("b", image(9)))
        second.send(Append("a", output.payload))
        assert second.worker_got == [Append("a", image(7))]
        del output
        await settle()
        fourth = Line(slab)
        assert fourth.engine.seat[:2] == first.engine.seat[:2]
        assert fourth.engine.seat.first_generation > first.engine.seat.first_generation
        third.engine_got.clear()
        for line in (second, third, fourth):
            line.engine.worker_died()
        await settle()
        assert slab.memory is None

    async def test_it_is_kept_until_its_reader_has_answered_or_is_dead(self) -> None:
        slab = SharedSlab()
        first, second = Line(slab, relays=True), Line(slab)
        second.to_engine_held_up = []
        first.say(JobOutput("a", image(7)))
        output = first.engine_got.pop()
        assert isinstance(output, JobOutput)
        second.send(Append("a", output.payload))
        del output
        await settle()
        assert slab.held_bytes == 300_000, "the other end may be reading it"
        assert slab.fill == 300_000 / SIZE
        second.engine.worker_died()
        await settle()
        assert slab.held_bytes == 0
        first.engine.worker_died()


async def test_the_memory_goes_with_the_last_worker() -> None:
    slab = SharedSlab()
    descriptors = len(os.listdir("/proc/self/fd"))
    lines = [Line(slab) for _ in range(4)]
    for line in lines:
        line.send(Append("a", image(1)))
    assert slab.memory is not None
    for line in lines:
        line.engine.worker_died()
        line.engine.worker_died()
    assert slab.memory is None
    assert slab.held_bytes == 0
    del lines, line
    assert len(os.listdir("/proc/self/fd")) == descriptors


async def test_the_memory_of_a_dead_worker_is_given_back() -> None:
    slab = SharedSlab()
    first, second = Line(slab), Line(slab)
    first.to_engine_held_up = []
    first.send(*(Append("a", image(n, 270_000)) for n in range(3)))
    assert slab.memory is not None
    assert slab.memory.resident_bytes > 700_000
    first.engine.worker_died()
    assert slab.memory.resident_bytes < 50_000
    second.engine.worker_died()


def _stale(frames: bytes) -> bytes:
    """The same messages, with handles of payloads that were freed long ago."""
    (body, *rest) = bodies(frames)
    apart = framing.decode_apart(body)
    assert isinstance(apart, Apart)
    parts = tuple(
        msgspec.structs.replace(part, handle=msgspec.structs.replace(part.handle, generation=1))
        for part in apart.parts
    )
    del rest
    return framing.encode_apart(Apart(apart.message, parts))


def test_freed_is_a_message_of_links() -> None:
    assert framing.decode_apart(framing.encode_apart(Freed(()))[4:]) == Freed(())
