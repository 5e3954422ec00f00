"""Payloads of other hosts, read by RDMA or whatever else NIXL finds, without their writer's help.

The writer learns nothing of such a read, and it cannot be called back. So a reader first claims a
payload, and says when it will touch the memory no more; what is claimed is freed only then. Claims
go as questions over ZeroMQ, and may come twice: a read has a number. This module must not know what
a payload is part of.

Source:
    NIXL, https://github.com/ai-dynamo/nixl: a transfer request can be released while it runs only
    where the backend is able to stop it.
"""

from __future__ import annotations

import importlib
import threading
from dataclasses import dataclass
from importlib.util import find_spec
from types import ModuleType
from typing import Any, Literal

import msgspec
import numpy as np

from duologue.core.clock import Clock, SystemClock
from duologue.core.errors import EngineError, StageTimeout
from duologue.engines.transport.extents import Extents
from duologue.engines.transport.port import Data, Handle, lost
from duologue.engines.transport.questions import Answerer, Asker
from duologue.engines.transport.slots import Slots

MAX_PAYLOADS = 4096
MAX_UNSETTLED = 64
"""Claims whose end a writer could not be told yet; with more of them, nothing is read there."""

_PACKAGES = ("nixl", "nixl_cu12", "nixl_cu13")
_MEMORY = "DRAM"
_LOOK_S = 0.0002
_LAST_WORDS_S = 0.2
_SPINS = 50


class _Claim(msgspec.Struct, frozen=True, array_like=True):
    """What a reader says of its read ``number``.

    Args:
        knows: The agent whose metadata it has already.
    """

    kind: Literal["claim", "settle"]
    handle: Handle
    reader: str
    number: int
    knows: str = ""


class _Claimed(msgspec.Struct, frozen=True, array_like=True):
    """Where it may read; ``address`` 0: nowhere."""

    address: int
    agent: str
    metadata: bytes


_encode = msgspec.msgpack.Encoder().encode
_decode_claim = msgspec.msgpack.Decoder(_Claim).decode
_decode_claimed = msgspec.msgpack.Decoder(_Claimed).decode

_still_read: set[NixlStore] = set()
"""Stores that were closed while somebody read: their memory stays until the process ends."""


class Registered:
    """Memory that the network may read or write, and the agent that knows it.

    Raises:
        EngineError: NIXL is not installed, or has no way to this memory.
    """

    def __init__(self, name: str, size_bytes: int) -> None:
        library = _library()
        self.agent: Any = library.nixl_agent(name, library.nixl_agent_config(backends=["UCX"]))
        if "UCX" not in self.agent.backends:
            raise EngineError("NIXL has no backend UCX here")
        self.memory = np.zeros(size_bytes, np.uint8)
        self.extents = Extents(size_bytes)
        self._descriptors: Any = self.agent.register_memory(
            [(*self._run(0, size_bytes), "")], _MEMORY
        )

    def run(self, start: int, size_bytes: int) -> Any:
        """Describe a part of the memory for a transfer."""
        return self.agent.get_xfer_descs([self._run(start, size_bytes)], _MEMORY)

    def address(self, start: int) -> int:
        """Say where a part begins."""
        return int(self.memory.ctypes.data) + start

    def close(self) -> None:
        """Forget the memory: nobody reads or writes it from elsewhere. Twice is once."""
        descriptors, self._descriptors = self._descriptors, None
        if descriptors is not None:
            self.agent.deregister_memory(descriptors)

    def _run(self, start: int, size_bytes: int) -> tuple[int, int, int]:
        return (self.address(start), size_bytes, 0)


class NixlStore:
    """The writer's end.

    Args:
        name: Of its agent; no other one, before or elsewhere, has the same.
        host: The address of this machine, by which readers find it; ``port`` likewise, 0: any.
        secret: Of the cluster.
        max_bytes: How much may be held.
        first_generation: Nobody may have used it, or the next ones, at this address before.

    Concurrency:
        All methods may be called from any thread.
    """

    def __init__(
        self,
        name: str,
        host: str,
        port: int,
        *,
        secret: bytes,
        max_bytes: int,
        first_generation: int,
    ) -> None:
        self._name = name
        self._registered = Registered(name, max_bytes)
        self._metadata: bytes = self._registered.agent.get_agent_metadata()
        self._mine = threading.Lock()
        self._starts: dict[int, int] = {}
        self._answerer = Answerer(host, port, secret, self._answer)
        self._slots = Slots(self._answerer.place, MAX_PAYLOADS, first_generation)
        self._answerer.start()

    @property
    def place(self) -> str:
        """Where readers find it."""
        return self._answerer.place

    @property
    def held_bytes(self) -> int:
        """What was put and not freed, or is still being read, in whole pages."""
        return self._registered.extents.taken_bytes

    def put(self, data: Data) -> Handle | None:
        """Copy a payload into the memory; ``None`` if there is no room."""
        size_bytes = len(data)
        with self._mine:
            start = self._registered.extents.take(size_bytes)
            if start is None:
                return None
            handle = self._slots.add(size_bytes)
            if handle is None:
                self._registered.extents.give_back(start, size_bytes)
                return None
            self._starts[handle.slot] = start
        self._registered.memory[start : start + size_bytes] = np.frombuffer(data, np.uint8)
        return handle

    def free(self, handle: Handle) -> None:
        """Give up a payload; its memory is used again when nobody reads it."""
        with self._mine:
            self._vacate(self._slots.free(handle))

    def reader_died(self, reader: str) -> None:
        """A reader certainly touches nothing any more, whatever it had begun."""
        with self._mine:
            self._vacate(self._slots.reader_died(reader))

    def close(self) -> None:
        """Free everything and answer nobody. What is being read stays until the process ends."""
        with self._mine:
            self._vacate(self._slots.free_all())
            is_read = len(self._slots) > 0
        self._answerer.close()
        if is_read:
            _still_read.add(self)
        else:
            self._registered.close()

    def _vacate(self, handles: list[Handle]) -> None:
        for handle in handles:
            self._registered.extents.give_back(self._starts.pop(handle.slot), handle.size_bytes)

    def _answer(self, asked: bytes) -> list[Data] | None:
        try:
            claim = _decode_claim(asked)
        except msgspec.DecodeError:
            return None
        with self._mine:
            if claim.kind == "settle":
                self._vacate(self._slots.settle(claim.handle, claim.reader, claim.number))
                return [b""]
            address = 0
            if self._slots.claim(claim.handle, claim.reader, claim.number):
                address = self._registered.address(self._starts[claim.handle.slot])
        metadata = b"" if claim.knows == self._name else self._metadata
        return [_encode(_Claimed(address, self._name, metadata))]


@dataclass(eq=False, slots=True)
class _Transfer:
    """A read.

    Args:
        request: Of NIXL; ``None`` before it was made.
        start: Where it lands.
    """

    request: Any
    claim: _Claim
    start: int


class NixlReader:
    """Reads the payloads of all stores of a cluster.

    Args:
        name: As of a store.
        max_bytes: How much may be under way, reads included that were given up and run on.

    Concurrency:
        Belongs to one thread.
    """

    def __init__(
        self, name: str, *, secret: bytes, max_bytes: int, clock: Clock | None = None
    ) -> None:
        self.name = name
        self._clock = clock or SystemClock()
        self._asker = Asker(secret, self._clock)
        self._landing = Registered(name, max_bytes)
        self._agents: dict[str, str] = {}
        self._number = 0
        self._running_on: list[_Transfer] = []
        self._unsettled: dict[str, list[_Claim]] = {}
        self._pause = threading.Event()

    def get(self, handle: Handle, deadline: float) -> bytes:
        """Claim a payload, read it, and say that it was read.

        Raises:
            PayloadLost: The store has it no more, or it could not be read.
            StageTimeout: The store did not answer, or the read took longer than the deadline.
            EngineError: Too much of what was given up is still under way.
        """
        place = handle.place
        self._look_after(place, deadline)
        if len(self._unsettled.get(place, ())) >= MAX_UNSETTLED:
            raise EngineError(f"{place} was not told the end of {MAX_UNSETTLED} reads")
        start = self._landing.extents.take(handle.size_bytes)
        if start is None:
            raise EngineError(
                f"no room for {handle.size_bytes} bytes beside {len(self._running_on)} reads that "
                "were given up and still run"
            )
        self._number += 1
        claim = _Claim("claim", handle, self.name, self._number, self._agents.get(place, ""))
        transfer = _Transfer(None, claim, start)
        try:
            claimed = self._claim(claim, deadline)
            return self._read(transfer, claimed, deadline)
        finally:
            if transfer not in self._running_on:
                self._end(transfer, deadline)

    def settle(self, deadline: float) -> None:
        """See to the end of reads that were given up, as far as it comes by the deadline."""
        while places := {each.claim.handle.place for each in self._running_on} | {*self._unsettled}:
            for place in places:
                self._look_after(place, deadline)
            if not self._running_on or self._clock.now() >= deadline:
                return
            self._pause.wait(_LOOK_S)

    def close(self) -> None:
        """Leave nothing behind but what still runs."""
        now = self._clock.now()
        for place in list(self._unsettled):
            self._look_after(place, now + _LAST_WORDS_S)
        self._asker.close()
        if not self._running_on:
            self._landing.close()

    def _claim(self, claim: _Claim, deadline: float) -> _Claimed:
        place = claim.handle.place
        try:
            answer = self._asker.ask(place, _encode(claim), deadline)
            claimed = _decode_claimed(b"".join(frame.bytes for frame in answer))
        except StageTimeout:
            raise
        except EngineError as exc:
            raise lost(claim.handle, exc.message) from exc
        except msgspec.DecodeError as exc:
            raise lost(claim.handle, "what came is no answer") from exc
        if claimed.agent != self._agents.get(place):
            # Another store than before, to which nothing is owed.
            self._unsettled.pop(place, None)
            self._landing.agent.add_remote_agent(claimed.metadata)
            self._agents[place] = claimed.agent
        if not claimed.address:
            raise lost(claim.handle, "it was freed")
        return claimed

    def _read(self, transfer: _Transfer, claimed: _Claimed, deadline: float) -> bytes:
        handle, start = transfer.claim.handle, transfer.start
        if not handle.size_bytes:
            return b""  # there is nothing that could be read
        agent = self._landing.agent
        there = agent.get_xfer_descs([(claimed.address, handle.size_bytes, 0)], _MEMORY)
        here = self._landing.run(start, handle.size_bytes)
        transfer.request = agent.initialize_xfer("READ", here, there, claimed.agent)
        state, looks = agent.transfer(transfer.request), 0
        while state == "PROC":
            if self._clock.now() >= deadline:
                self._running_on.append(transfer)
                raise StageTimeout(f"{handle.size_bytes} bytes of {handle.place} came too late")
            looks += 1
            if looks > _SPINS:
                self._pause.wait(_LOOK_S)
            state = agent.check_xfer_state(transfer.request)
        if state != "DONE":
            raise lost(handle, "it could not be read")
        return self._landing.memory[start : start + handle.size_bytes].tobytes()

    def _look_after(self, place: str, deadline: float) -> None:
        """Reads that were given up: their memory, here and there, is waited for."""
        for each in list(self._running_on):
            if self._landing.agent.check_xfer_state(each.request) != "PROC":
                self._running_on.remove(each)
                self._end(each, deadline)
        for claim in self._unsettled.pop(place, ()):
            self._settle(claim, deadline)

    def _end(self, transfer: _Transfer, deadline: float) -> None:
        if transfer.request is not None:
            self._landing.agent.release_xfer_handle(transfer.request)
        self._landing.extents.give_back(transfer.start, transfer.claim.handle.size_bytes)
        self._settle(transfer.claim, deadline)

    def _settle(self, claim: _Claim, deadline: float) -> None:
        place = claim.handle.place
        unsettled = self._unsettled.get(place)
        told = msgspec.structs.replace(claim, kind="settle", knows="")
        try:
            if not unsettled:  # else it does not answer: asked once in each read
                self._asker.ask(place, _encode(told), deadline)
                return
        except EngineError:
            pass
        self._unsettled.setdefault(place, []).append(claim)


def _library() -> ModuleType:
    for name in _PACKAGES:
        if find_spec(name) is not None:
            return importlib.import_module(name)
    raise EngineError(f"NIXL is not installed; it is one of the packages {', '.join(_PACKAGES)}")
