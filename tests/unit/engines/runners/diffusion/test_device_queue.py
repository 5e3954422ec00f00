from __future__ import annotations

import pytest

from duologue.engines.runners.diffusion.device_queue import GpuQueue, HostQueue, queue_of

pytestmark = pytest.mark.torch


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


@pytest.mark.parametrize("ahead", [1, 3])
def test_the_host_is_ahead_by_a_few_parts_at_most(ahead: int) -> None:
    device = Device()
    queue = GpuQueue(device.event)
    queue.mark(ahead)
    for part in range(1, 50):
        device.told = part
        queue.mark(ahead)
        assert device.done == max(0, part - ahead)
    assert device.made <= ahead + 1, "events are used again"


def test_in_the_end_all_is_done() -> None:
    device = Device()
    queue = GpuQueue(device.event)
    for part in (1, 2, 3):
        device.told = part
        queue.mark(1)
    device.told = 4
    queue.finish()
    assert device.done == 4
    device.told = 5
    queue.mark(1)
    assert device.done == 4, "it goes on as it began"


def test_a_processor_has_done_what_it_was_told() -> None:
    queue = queue_of("cpu")
    assert isinstance(queue, HostQueue)
    assert not queue.is_behind
    queue.mark(1)
    queue.finish()
    assert queue_of("cuda:1").is_behind
