from __future__ import annotations

import asyncio
from collections.abc import Callable

from duologue.engines import framing
from duologue.engines.executors.base import Loss
from duologue.engines.executors.linked import Lines, LinkedWorker, LinkProtocol
from duologue.engines.messages import Died, Ready, Report
from tests.patience import PATIENCE_S
from tests.unit.engines.executors.kinds import Ear, spec


class Line(asyncio.Transport):
    """A link whose other end is the test."""

    def __init__(self, closed: Callable[[], None]) -> None:
        super().__init__()
        self.written = bytearray()
        self._closed = closed

    def write(self, data: bytes) -> None:
        self.written += data

    def get_write_buffer_size(self) -> int:
        return 0

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def abort(self) -> None:
        self._closed()


class Process:
    """A process that dies only when the test says so."""

    def __init__(self) -> None:
        self.killed = 0
        self.released = 0

    def kill(self) -> None:
        self.killed += 1

    def release(self) -> None:
        self.released += 1


class Scene:
    """A worker that runs."""

    def __init__(self) -> None:
        self.ear = Ear()
        self.worker = LinkedWorker(spec(), self.ear, stall_s=10)
        self.link = LinkProtocol(self.worker)
        self.process = Process()
        self.line = Line(lambda: self.link.connection_lost(None))
        self.link.connection_made(self.line)
        self.worker.take_handle(self.process)
        self.worker.listen()

    def says(self, *messages: Ready | Died) -> None:
        self.link.data_received(framing.encode(Report(list(messages))))


async def test_it_is_told_what_to_be_before_anything_else() -> None:
    (body,) = framing.FrameReader().feed(bytes(Scene().line.written))
    assert framing.decode_spec(body) == spec()


async def test_its_loss_is_told_when_link_output_and_process_are_gone_in_any_order() -> None:
    for order in ("lop", "lpo", "olp", "opl", "plo", "pol"):
        scene = Scene()
        for letter in order:
            assert scene.ear.losses == []
            match letter:
                case "l":
                    scene.link.connection_lost(None)
                case "o":
                    scene.worker.output_ended()
                case _:
                    scene.worker.exited("it left")
        assert scene.ear.losses == [Loss("replica_lost", "it left")]
        assert scene.process.released == 1


async def test_last_words_go_before_the_status() -> None:
    scene = Scene()
    scene.says(Died("worker_crashed", "ValueError at runner.py:7"))
    scene.worker.exited("its process ended with status 0")
    scene.worker.output_ended()
    scene.link.connection_lost(None)
    assert scene.ear.losses == [Loss("worker_crashed", "ValueError at runner.py:7")]


async def test_what_was_printed_is_quoted_only_of_one_that_never_was_ready() -> None:
    for ready in (False, True):
        scene = Scene()
        if ready:
            scene.says(Ready(took_s=0.1))
        scene.worker.printed("somebody's words")
        scene.worker.output_ended()
        scene.link.connection_lost(None)
        scene.worker.exited("it left")
        (loss,) = scene.ear.losses
        assert loss.reason == ("it left" if ready else "it left: somebody's words")


async def test_a_process_that_outlives_its_link_is_killed() -> None:
    scene = Scene()
    scene.link.connection_lost(None)
    assert scene.process.killed == 0, "it may be dead, and its status on its way"
    async with asyncio.timeout(PATIENCE_S):
        while not scene.process.killed:  # noqa: ASYNC110
            await asyncio.sleep(0)
    scene.worker.exited("killed")
    scene.worker.output_ended()
    assert len(scene.ear.losses) == 1


async def test_a_link_that_outlives_its_process_is_closed() -> None:
    """As one that a forked child holds."""
    scene = Scene()
    scene.worker.exited("it left")
    await scene.ear.lost()


async def test_one_that_is_killed_before_it_has_a_process_is_no_trouble() -> None:
    worker = LinkedWorker(spec(), Ear(), stall_s=10)
    worker.kill()
    worker.close()


def test_what_is_printed_comes_line_by_line() -> None:
    heard: list[str] = []
    lines = Lines(heard.append)
    for data in (b"one\ntw", b"o\n", b"\xff\n", b"x" * 5000, b"y\n"):
        lines.feed(data)
    assert heard == ["one", "two", "\ufffd", "x" * 4096, "y"]
