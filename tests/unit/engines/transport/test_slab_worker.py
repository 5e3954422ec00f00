from __future__ import annotations

import threading

from duologue.engines import framing
from duologue.engines.media_payloads import ImageData
from duologue.engines.messages import Apart, Append, Freed, JobOutput, Part, Report
from duologue.engines.transport.memory_file import MemoryFile
from duologue.engines.transport.slab import Region, SlabReader, SlabStore
from duologue.engines.transport.slab_seat import Seat
from duologue.engines.transport.slab_worker import WorkerEnd

SIZE = 2**20


def body(frame: bytes) -> bytes:
    (only,) = framing.FrameReader().feed(frame)
    return only


class Engine:
    """The other end, bare."""

    def __init__(self) -> None:
        self.memory = MemoryFile.create("test")
        to_worker = Region(self.memory.grow(SIZE), SIZE)
        from_worker = Region(self.memory.grow(SIZE), SIZE)
        self.seat = Seat(to_worker, from_worker, 5 << 32)
        self.store = SlabStore(self.memory, to_worker)
        self.reader = SlabReader(self.memory)
        self.worker = WorkerEnd(self.memory, self.seat)

    def heard(self, report: Report) -> Apart:
        """The first frame of a report, which must be of something large."""
        first, *_ = framing.FrameReader().feed(self.worker.encode(report))
        message = framing.decode_apart(first)
        assert isinstance(message, Apart)
        return message


def test_what_it_makes_lies_in_its_own_region_under_a_generation_of_its_own() -> None:
    engine = Engine()
    made = engine.heard(Report([JobOutput("a", ImageData(b"x" * 300_000, "png", 1, 1))]))
    (part,) = made.parts
    assert part.handle.place == engine.seat.from_worker.place
    assert part.handle.generation >= 5 << 32
    assert engine.reader.get(part.handle) == b"x" * 300_000


def test_what_was_read_makes_room_though_another_thread_hears_of_it() -> None:
    engine = Engine()
    report = Report([JobOutput("a", ImageData(b"x" * 700_000, "png", 1, 1))])
    made = engine.heard(report)
    freed = body(framing.encode_apart(Freed((made.parts[0].handle,))))
    thread = threading.Thread(target=lambda: engine.worker.take(freed))
    thread.start()
    thread.join()
    assert engine.heard(report).parts[0].handle.generation > made.parts[0].handle.generation


def test_what_it_has_read_it_says_at_once() -> None:
    engine = Engine()
    handle = engine.store.put(b"y" * 300_000)
    assert handle is not None
    apart = framing.encode_apart(
        Apart(Append("a", ImageData(b"", "png", 1, 1)), (Part("data", -1, handle),))
    )
    messages, answer = engine.worker.take(body(apart))
    assert messages == [Append("a", ImageData(b"y" * 300_000, "png", 1, 1))]
    assert framing.decode_apart(body(answer)) == Freed((handle,))
