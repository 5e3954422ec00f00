from __future__ import annotations

import pytest

from duologue.engines.runners.diffusion.device_queue import GpuQueue, HostQueue, queue_of

pytestmark = pytest.mark.diffusion


class Device:
    """Is told parts of work, and does them when somebody waits for it."""

    def __init__(self) -> None:
        self.told = 0
        self.done = 0
        self.made = 0

    def event(self) -> Event:
        self.made += 1
        return Event(self)


class Event:
    def __init__(self, device: Device) -> None:
        self.device = device
        self.place = 0

    def record(self) -> None:
        self.place = self.device.told

    def synchronize(self) -> None:
        self.device.done = max(self.device.done, self.place)


def test_the_host_is_ahead_by_one_part_at_most() -> None:
    device = Device()
    queue = GpuQueue(device.event)
    queue.mark()
    for part in range(1, 50):
        device.told = part
        queue.mark()
        assert device.done == part - 1
    assert device.made <= 2, "events are used again"


def test_in_the_end_all_is_done() -> None:
    device = Device()
    queue = GpuQueue(device.event)
    for part in (1, 2, 3):
        device.told = part
        queue.mark()
    device.told = 4
    queue.finish()
    assert device.done == 4
    device.told = 5
    queue.mark()
    assert device.done == 4, "it goes on as it began"


def test_a_processor_has_done_what_it_was_told() -> None:
    queue = queue_of("cpu")
    assert isinstance(queue, HostQueue)
    assert queue.ahead == 0
    queue.mark()
    queue.finish()
    assert queue_of("cuda:1").ahead == 1
