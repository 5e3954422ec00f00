"""What can be said of it where there is no device: that it says so, and what it would send.

With one, ``test_two_processes_share_memory_of_a_device`` is added, see the end.
"""

from __future__ import annotations

import multiprocessing
from multiprocessing.connection import Connection

import msgspec
import pytest
import torch

from duologue.core.clock import SystemClock
from duologue.core.errors import EngineError
from duologue.engines.transport.cuda_ipc import Introduction, MappedMemory, WrittenMemory
from duologue.engines.transport.device_slab import DeviceReader, DeviceStore, TensorHandle

NO_SUCH_DEVICE = 99

pytestmark = pytest.mark.torch


def test_a_device_that_is_not_there_is_named() -> None:
    with pytest.raises(EngineError, match=f"no CUDA device {NO_SUCH_DEVICE}; this process sees"):
        WrittenMemory(NO_SUCH_DEVICE, 4096)


def test_a_reader_without_the_device_is_told_so() -> None:
    told = Introduction(NO_SUCH_DEVICE, 8192, (0, b"x" * 64, 8192, 0, b"r", 0, b"e", True), (b"e",))
    with pytest.raises(EngineError, match="no CUDA device"):
        MappedMemory(msgspec.msgpack.encode(told))


@pytest.mark.parametrize("words", [b"", b"\xc1", b"\x93\x01\x02\x03"])
def test_an_introduction_that_is_none_is_refused(words: bytes) -> None:
    with pytest.raises(EngineError, match="nonsense"):
        MappedMemory(words)


def test_an_introduction_arrives_as_it_was() -> None:
    told = Introduction(
        0, 8192, (0, b"\x00\xff" * 32, 8192, 0, b"/r", 3, b"\x01", False), (b"\x02",)
    )
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(told), type=Introduction) == told


def read(link: Connection) -> None:
    reader = DeviceReader(MappedMemory(link.recv_bytes()))
    while words := link.recv_bytes():
        handle = msgspec.msgpack.decode(words, type=TensorHandle)
        found = reader.get(handle, SystemClock().now() + 15)
        link.send_bytes(found.cpu().to(torch.float32).numpy().tobytes())


def two_processes_share_memory_of_a_device() -> None:
    shared = WrittenMemory(0, 2**24)
    store = DeviceStore(shared, "cuda:0")
    ours, theirs = multiprocessing.Pipe()
    child = multiprocessing.get_context("spawn").Process(target=read, args=(theirs,), daemon=True)
    child.start()
    ours.send_bytes(shared.introduction())
    for number in range(200):
        tensor = torch.full((1000, number % 7), float(number), device="cuda:0")
        handle = store.put(tensor)
        assert handle is not None
        ours.send_bytes(msgspec.msgpack.encode(handle))
        assert ours.recv_bytes() == tensor.cpu().numpy().tobytes()
        store.free(handle.handle)
    assert store.held_bytes == 0
    ours.send_bytes(b"")
    child.join(15)
    assert child.exitcode == 0


if torch.cuda.is_available():
    test_two_processes_share_memory_of_a_device = two_processes_share_memory_of_a_device
