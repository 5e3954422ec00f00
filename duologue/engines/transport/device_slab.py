"""Tensors on one device: copied into memory that processes share, and out of it, by the device.

The memory begins with a table of generations, as a slab's does. What is copied when, each side's
stream knows: the writer records an event for each slot, and the reader's stream waits for it. This
module must not know how memory of a device comes to be shared.
"""

from __future__ import annotations

import math
import threading
from typing import Protocol

import msgspec
import torch

from duologue.core.clock import Clock, SystemClock
from duologue.core.errors import StageTimeout
from duologue.engines.transport.extents import ALIGNMENT, Extents
from duologue.engines.transport.port import Handle, lost
from duologue.engines.transport.slots import Slots

SLOTS = 64
"""Tensors that one writer may have under way: each has an event."""

TABLE_BYTES = ALIGNMENT
_NOTHING = 0
_SPINS = 50
_LOOK_S = 0.0002


class DeviceMemory(Protocol):
    """Memory of a device that several processes have, and an event for each slot.

    Shapes:
        memory: [TABLE_BYTES + what there is for tensors] uint8
    """

    memory: torch.Tensor

    def record(self, slot: int) -> None:
        """The writer's stream has come so far."""
        ...

    def wait(self, slot: int) -> None:
        """Let the reader's stream wait for that."""
        ...

    def is_idle(self) -> bool:
        """Tell whether this process's stream has done all that it was given."""
        ...


class TensorHandle(msgspec.Struct, frozen=True, array_like=True):
    """Where a tensor lies, and what it is; a tensor without elements lies nowhere."""

    handle: Handle
    dtype: str
    shape: tuple[int, ...]


class DeviceStore:
    """The writer's end.

    Args:
        place: Names the memory in handles.
        first_generation: Larger than any that a writer before it handed out.

    Concurrency:
        Belongs to one thread, and to the stream that is current in it.
    """

    def __init__(self, shared: DeviceMemory, place: str, first_generation: int = 1) -> None:
        self._shared = shared
        self._table = shared.memory[: 16 * SLOTS].view(torch.int64).view(SLOTS, 2)
        self._table.fill_(_NOTHING)
        self._data = shared.memory[TABLE_BYTES:]
        self._extents = Extents(self._data.numel())
        self._slots = Slots(place, SLOTS, first_generation)
        self._starts: dict[int, int] = {}

    @property
    def held_bytes(self) -> int:
        """What was put and not freed, in whole pages."""
        return self._extents.taken_bytes

    def put(self, tensor: torch.Tensor) -> TensorHandle | None:
        """Copy a tensor of this device, without waiting for it; ``None`` if there is no room.

        Shapes:
            tensor: any; it arrives contiguous
        """
        size_bytes = tensor.numel() * tensor.element_size()
        start = self._extents.take(size_bytes)
        if start is None:
            return None
        handle = self._slots.add(size_bytes)
        if handle is None:
            self._extents.give_back(start, size_bytes)
            return None
        self._starts[handle.slot] = start
        if size_bytes:
            there = self._data[start : start + size_bytes].view(tensor.dtype)
            there.view(tensor.shape).copy_(tensor)
        self._table[handle.slot] = torch.tensor((start, handle.generation))
        self._shared.record(handle.slot)
        return TensorHandle(handle, str(tensor.dtype).removeprefix("torch."), tuple(tensor.shape))

    def free(self, handle: Handle) -> None:
        """Use the memory of a tensor again, once the reader has copied it."""
        for gone in self._slots.free(handle):
            self._table[gone.slot].fill_(_NOTHING)
            self._extents.give_back(self._starts.pop(gone.slot), gone.size_bytes)


class DeviceReader:
    """The reader's end.

    Concurrency:
        Belongs to one thread, and to the stream that is current in it.
    """

    def __init__(self, shared: DeviceMemory, clock: Clock | None = None) -> None:
        self._shared = shared
        self._clock = clock or SystemClock()
        self._pause = threading.Event()
        self._table = shared.memory[: 16 * SLOTS].view(torch.int64).view(SLOTS, 2)
        self._data = shared.memory[TABLE_BYTES:]

    def get(self, found: TensorHandle, deadline: float) -> torch.Tensor:
        """Copy a tensor; when this returns the device has, so that the writer may free it.

        Shapes:
            returns: as it was put, contiguous

        Raises:
            PayloadLost: It was freed, or the handle is of something else.
            StageTimeout: The device has not copied it by the deadline. The copy cannot be stopped:
                the memory is not to be freed before this process has ended, or reads again.
        """
        handle = found.handle
        dtype = getattr(torch, found.dtype, None)
        if not isinstance(dtype, torch.dtype) or not 0 <= handle.slot < SLOTS:
            raise lost(handle, "that is no tensor of this writer")
        if math.prod(found.shape) * dtype.itemsize != handle.size_bytes:
            raise lost(handle, "its shape and its size differ")
        self._shared.wait(handle.slot)
        start, generation = self._table[handle.slot].tolist()
        if generation != handle.generation:
            raise lost(handle, "it was freed")
        copy = self._data[start : start + handle.size_bytes].clone()
        looks = 0
        while not self._shared.is_idle():
            if self._clock.now() >= deadline:
                raise StageTimeout(f"{handle.size_bytes} bytes on the device came too late")
            looks += 1
            if looks > _SPINS:
                self._pause.wait(_LOOK_S)
        if self._table[handle.slot, 1].item() != handle.generation:
            raise lost(handle, "it was freed while it was read")
        return copy.view(dtype).view(found.shape)
