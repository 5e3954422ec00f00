"""Memory of a CUDA device that other processes of this machine map, with events that they see.

One allocation is shared once, when the two get to know each other, and not tensor by tensor: so
PyTorch's counting of what each process holds, which a process that is killed leaves undone, has
nothing to count. The writer keeps the allocation until its end. This module must not know what lies
in it.

Source:
    CUDA programming guide, interprocess communication; torch.multiprocessing, sharing CUDA tensors.
"""

from __future__ import annotations

from typing import Any

import msgspec
import torch

from duologue.core.errors import EngineError
from duologue.engines.transport.device_slab import SLOTS, TABLE_BYTES


class Introduction(msgspec.Struct, frozen=True, array_like=True):
    """What a reader must know to map the memory of a writer; for another process alone.

    Args:
        storage: As ``UntypedStorage._share_cuda_`` gives it.
        events: A handle for each slot.
    """

    device: int
    size_bytes: int
    storage: tuple[Any, ...]
    events: tuple[bytes, ...]


class WrittenMemory:
    """The memory, as its writer has it.

    Raises:
        EngineError: There is no such device here.
    """

    def __init__(self, device: int, size_bytes: int) -> None:
        _check(device)
        self._device = device
        self.memory = torch.zeros(
            TABLE_BYTES + size_bytes, dtype=torch.uint8, device=f"cuda:{device}"
        )
        self._events = [torch.cuda.Event(interprocess=True) for _ in range(SLOTS)]

    def introduction(self) -> bytes:
        """Return what readers need, to be sent to them."""
        stream = torch.cuda.current_stream(self._device)
        for event in self._events:
            event.record(stream)  # one that was never recorded has no handle
        stream.synchronize()
        shared = self.memory.untyped_storage()._share_cuda_()
        events = tuple(event.ipc_handle() for event in self._events)
        return msgspec.msgpack.encode(
            Introduction(self._device, self.memory.numel(), tuple(shared), events)
        )

    def record(self, slot: int) -> None:
        """The current stream has come so far."""
        self._events[slot].record(torch.cuda.current_stream(self._device))

    def wait(self, slot: int) -> None:
        """Let the current stream wait for that."""
        torch.cuda.current_stream(self._device).wait_event(self._events[slot])

    def is_idle(self) -> bool:
        """Tell whether the current stream has nothing to do."""
        return bool(torch.cuda.current_stream(self._device).query())


class MappedMemory:
    """The memory, as a reader has it.

    Raises:
        EngineError: There is no such device here, or the introduction is none.
    """

    def __init__(self, introduction: bytes) -> None:
        try:
            told = msgspec.msgpack.decode(introduction, type=Introduction)
        except msgspec.DecodeError as exc:
            raise EngineError("a writer on the device introduced itself with nonsense") from exc
        _check(told.device)
        self._device = told.device
        storage = torch.UntypedStorage._new_shared_cuda(*told.storage)
        self.memory = torch.empty(0, dtype=torch.uint8, device=f"cuda:{told.device}").set_(
            storage, 0, (told.size_bytes,)
        )
        device = torch.device("cuda", told.device)
        self._events = [torch.cuda.Event.from_ipc_handle(device, each) for each in told.events]

    def record(self, slot: int) -> None:
        """Only the writer records."""
        raise EngineError(f"slot {slot} is the writer's")

    def wait(self, slot: int) -> None:
        """Let the current stream wait until the writer's has come so far."""
        torch.cuda.current_stream(self._device).wait_event(self._events[slot])

    def is_idle(self) -> bool:
        """Tell whether the current stream has nothing to do."""
        return bool(torch.cuda.current_stream(self._device).query())


def _check(device: int) -> None:
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if not 0 <= device < count:
        raise EngineError(f"there is no CUDA device {device}; this process sees {count}")
