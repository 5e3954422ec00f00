"""Payloads of other hosts, within answers of ZeroMQ. Must not know what a payload is part of."""

from __future__ import annotations

import threading

import msgspec

from duologue.core.clock import Clock, SystemClock
from duologue.core.errors import EngineError, StageTimeout
from duologue.engines.transport.port import Data, Handle, lost
from duologue.engines.transport.questions import Answerer, Asker
from duologue.engines.transport.slots import Slots

MAX_PAYLOADS = 4096
_THERE, _GONE = b"1", b"0"
_ANSWER_FRAMES = 2

_encode = msgspec.msgpack.Encoder().encode
_decode_handle = msgspec.msgpack.Decoder(Handle).decode


class ZeromqStore:
    """The writer's end.

    Args:
        host: The address of this machine, by which readers find it.
        port: 0: any that is free.
        secret: Of the cluster.
        max_bytes: How much may be held.
        first_generation: Nobody may have used it, or the next ones, at this address before.

    Concurrency:
        All methods may be called from any thread.

    Raises:
        EngineError: The address cannot be listened at.
    """

    def __init__(
        self, host: str, port: int, *, secret: bytes, max_bytes: int, first_generation: int
    ) -> None:
        self.held_bytes = 0
        self._max_bytes = max_bytes
        self._mine = threading.Lock()
        self._objects: dict[int, Data] = {}
        self._answerer = Answerer(host, port, secret, self._answer)
        self._slots = Slots(self._answerer.place, MAX_PAYLOADS, first_generation)
        self._answerer.start()

    @property
    def place(self) -> str:
        """Where readers find it."""
        return self._answerer.place

    def put(self, data: Data) -> Handle | None:
        """Keep a payload, which must not change; ``None`` if there is no room."""
        with self._mine:
            if self.held_bytes + len(data) > self._max_bytes:
                return None
            handle = self._slots.add(len(data))
            if handle is not None:
                self.held_bytes += len(data)
                self._objects[handle.slot] = data
            return handle

    def free(self, handle: Handle) -> None:
        """Keep a payload no longer; ZeroMQ keeps what it is sending."""
        with self._mine:
            self._forget(self._slots.free(handle))

    def close(self) -> None:
        """Free everything and answer nobody."""
        with self._mine:
            self._forget(self._slots.free_all())
        self._answerer.close()

    def _forget(self, handles: list[Handle]) -> None:
        for handle in handles:
            self.held_bytes -= handle.size_bytes
            del self._objects[handle.slot]

    def _answer(self, asked: bytes) -> list[Data] | None:
        try:
            handle = _decode_handle(asked)
        except msgspec.DecodeError:
            return None
        with self._mine:
            if self._slots.holds(handle):
                return [_THERE, self._objects[handle.slot]]
        return [_GONE, b""]


class ZeromqReader:
    """Reads the payloads of all stores of a cluster.

    Concurrency:
        Belongs to one thread.
    """

    def __init__(self, *, secret: bytes, clock: Clock | None = None) -> None:
        self._asker = Asker(secret, clock or SystemClock())

    def get(self, handle: Handle, deadline: float) -> bytes:
        """Ask for a payload until there is an answer.

        Raises:
            PayloadLost: The store has it no more.
            StageTimeout: There is no answer by the deadline.
        """
        try:
            answer = self._asker.ask(handle.place, _encode(handle), deadline)
        except StageTimeout:
            raise
        except EngineError as exc:
            raise lost(handle, exc.message) from exc
        if len(answer) != _ANSWER_FRAMES:
            raise lost(handle, "what came is no answer")
        status, data = answer
        if status.bytes != _THERE or len(data) != handle.size_bytes:
            raise lost(handle, "it was freed")
        found: bytes = data.bytes
        return found

    def close(self) -> None:
        """Ask nobody any more."""
        self._asker.close()
