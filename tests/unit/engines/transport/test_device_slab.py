"""On the CPU: its memory is shared as a file, and its one stream is always idle, unless stopped."""

from __future__ import annotations

import mmap

import pytest
import torch

from duologue.core.clock import SystemClock
from duologue.core.errors import StageTimeout
from duologue.engines.transport.device_slab import (
    SLOTS,
    TABLE_BYTES,
    DeviceReader,
    DeviceStore,
    TensorHandle,
)
from duologue.engines.transport.memory_file import MemoryFile
from duologue.engines.transport.port import Handle, PayloadLost

SIZE = 2**20

pytestmark = pytest.mark.torch


class MappedTwice:
    """One end of memory that another mapping shows too."""

    def __init__(self, file: MemoryFile) -> None:
        self._map: mmap.mmap = file.map(0, TABLE_BYTES + SIZE, writable=True)
        self.memory = torch.frombuffer(self._map, dtype=torch.uint8)
        self.recorded: list[int] = []
        self.waited: list[int] = []
        self.busy_looks = 0

    def record(self, slot: int) -> None:
        self.recorded.append(slot)

    def wait(self, slot: int) -> None:
        self.waited.append(slot)

    def is_idle(self) -> bool:
        self.busy_looks -= 1
        return self.busy_looks < 0


class Device:
    def __init__(self) -> None:
        file = MemoryFile.create("device")
        file.grow(TABLE_BYTES + SIZE)
        self.ours, self.theirs = MappedTwice(file), MappedTwice(file)
        self.store = DeviceStore(self.ours, "device")
        self.reader = DeviceReader(self.theirs)

    def put(self, tensor: torch.Tensor) -> TensorHandle:
        handle = self.store.put(tensor)
        assert handle is not None
        return handle

    def get(self, handle: TensorHandle) -> torch.Tensor:
        return self.reader.get(handle, SystemClock().now() + 15)


@pytest.fixture
def device() -> Device:
    return Device()


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.bfloat16, torch.int64, torch.uint8, torch.bool]
)
@pytest.mark.parametrize("shape", [(), (1,), (7,), (0,), (3, 0, 5), (2, 3, 65), (64, 64)])
def test_tensors_come_through_as_they_were(
    device: Device, dtype: torch.dtype, shape: tuple[int, ...]
) -> None:
    tensor = torch.randint(0, 2, shape).to(dtype)
    found = device.get(device.put(tensor))
    assert (found.dtype, found.shape) == (dtype, tensor.shape)
    assert torch.equal(found, tensor)


def test_strides_do_not_travel(device: Device) -> None:
    tensor = torch.arange(12.0).view(3, 4).T
    found = device.get(device.put(tensor))
    assert torch.equal(found, tensor)
    assert found.is_contiguous()


def test_what_was_got_is_a_copy(device: Device) -> None:
    handle = device.put(torch.ones(1000))
    found = device.get(handle)
    device.store.free(handle.handle)
    device.put(torch.zeros(1000))
    assert torch.equal(found, torch.ones(1000))


def test_the_reader_waits_for_the_event_of_the_slot(device: Device) -> None:
    first, second = device.put(torch.ones(4)), device.put(torch.ones(4))
    device.get(second)
    device.get(first)
    assert device.ours.recorded == [0, 1]
    assert device.theirs.waited == [1, 0]


def test_a_copy_that_takes_too_long_is_a_time_out_and_the_next_read_succeeds(
    device: Device,
) -> None:
    handle = device.put(torch.ones(4))
    device.theirs.busy_looks = 10**9
    with pytest.raises(StageTimeout, match="16 bytes on the device"):
        device.reader.get(handle, SystemClock().now() + 0.01)
    device.theirs.busy_looks = 100
    assert torch.equal(device.get(handle), torch.ones(4))


def test_what_was_freed_is_lost_and_freeing_twice_does_no_harm(device: Device) -> None:
    first = device.put(torch.ones(4))
    device.store.free(first.handle)
    second = device.put(torch.zeros(4))
    device.store.free(first.handle)
    with pytest.raises(PayloadLost):
        device.get(first)
    assert torch.equal(device.get(second), torch.zeros(4))


def test_there_is_an_end_to_bytes_and_to_slots(device: Device) -> None:
    big = device.put(torch.zeros(SIZE, dtype=torch.uint8))
    assert device.store.put(torch.zeros(1)) is None
    device.store.free(big.handle)
    for _ in range(SLOTS):
        device.put(torch.zeros(0))
    assert device.store.put(torch.zeros(0)) is None
    assert device.store.held_bytes == 0


def test_a_new_writer_has_nothing_of_the_one_before(device: Device) -> None:
    old = device.put(torch.ones(4))
    store = DeviceStore(device.ours, "device", first_generation=1 << 32)
    with pytest.raises(PayloadLost):
        device.get(old)
    new = store.put(torch.zeros(4))
    assert new is not None
    assert torch.equal(device.get(new), torch.zeros(4))


@pytest.mark.parametrize(
    "forged",
    [
        TensorHandle(Handle("device", -1, 1, 16), "float32", (4,)),
        TensorHandle(Handle("device", SLOTS, 1, 16), "float32", (4,)),
        TensorHandle(Handle("device", 0, 1, 16), "float32", (5,)),
        TensorHandle(Handle("device", 0, 1, 16), "load", (4,)),
        TensorHandle(Handle("device", 0, 0, 16), "float32", (4,)),
    ],
)
def test_handles_that_nobody_gave_out_are_refused(device: Device, forged: TensorHandle) -> None:
    device.put(torch.ones(4))
    with pytest.raises(PayloadLost):
        device.get(forged)
