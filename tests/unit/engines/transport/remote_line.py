"""A link with both ends of a transport between hosts: ZeroMQ over this machine's TCP."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec

from duologue.core.clock import Clock
from duologue.engines import framing
from duologue.engines.media_payloads import ImageData
from duologue.engines.messages import Apart, Freed, FromWorker, Report, ToWorker
from duologue.engines.transport.port import Handle
from duologue.engines.transport.remote_engine import RemoteEnd, RemotePayloads
from duologue.engines.transport.remote_worker import RemoteWorkerEnd

HOST = "127.0.0.1"
SIZE = 2**20


def image(number: int, size: int = 300_000) -> ImageData:
    return ImageData(bytes([number]) * size, "png", 8, 8)


def bodies(frames: bytes) -> list[bytes]:
    return framing.FrameReader().feed(frames)


def elsewhere(frames: bytes, **handle: object) -> bytes:
    """The same, but that payloads are said to lie somewhere else."""
    changed = b""
    for body in bodies(frames):
        apart = framing.decode_apart(body)
        assert isinstance(apart, Apart)
        parts = tuple(
            msgspec.structs.replace(part, handle=msgspec.structs.replace(part.handle, **handle))
            for part in apart.parts
        )
        changed += framing.encode_apart(Apart(apart.message, parts))
    return changed


class RemoteLine:
    """What is written arrives at once, unless it is held up; payloads are read in threads.

    Made in a loop, which hears the worker.
    """

    def __init__(
        self,
        payloads: RemotePayloads,
        *,
        relays: bool = False,
        room_bytes: int = SIZE,
        timeout_s: float = 15.0,
        clock: Clock | None = None,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self.engine: RemoteEnd = payloads.enlist("zeromq", "stage/0", room_bytes, relays)
        self.engine.open_at(HOST)
        self.worker = RemoteWorkerEnd(
            msgspec.structs.replace(self.engine.workers_seat, host=HOST),
            self._received,
            lambda frames: self._call(self.to_engine, frames),
            timeout_s,
            clock,
        )
        self.engine.link_made(self.to_worker, self._heard)
        self.worker_got: list[ToWorker] = []
        self.engine_got: list[FromWorker] = []
        self.to_engine_held_up: list[bytes] | None = None
        self.sizes: list[int] = []
        self.freed: list[Handle] = []

    def send(self, *messages: ToWorker) -> None:
        self.to_worker(self.engine.encode(messages))

    def say(self, *messages: FromWorker) -> None:
        self.to_engine(self.worker.encode(Report(list(messages))))

    def to_worker(self, frames: bytes) -> None:
        self.sizes.append(len(frames))
        for body in bodies(frames):
            if body[0] == framing.APART:
                self.worker.take(body)
            else:
                self.worker.deliver(framing.decode_messages(body))

    def to_engine(self, frames: bytes) -> None:
        if self.to_engine_held_up is not None:
            self.to_engine_held_up.append(frames)
            return
        self.sizes.append(len(frames))
        for body in bodies(frames):
            if body[0] == framing.APART:
                message = framing.decode_apart(body)
                self.freed += message.handles if isinstance(message, Freed) else ()
                report = self.engine.take(body)
            else:
                report = self.engine.hold_back(framing.decode_report(body))
            if report is not None:
                self._heard(report)

    def let_through(self) -> None:
        frames, self.to_engine_held_up = self.to_engine_held_up or [], None
        for each in frames:
            self.to_engine(each)

    async def close(self) -> None:
        self.engine.worker_died()
        await asyncio.to_thread(self.worker.close)

    def _received(self, messages: Sequence[ToWorker]) -> None:
        self.worker_got += messages

    def _heard(self, report: Report) -> None:
        self.engine_got += report.messages

    def _call(self, act: object, frames: bytes) -> None:
        self._loop.call_soon_threadsafe(act, frames)  # type: ignore[arg-type]
