"""How far the host may run ahead of the device that it gives work to.

A GPU is told much faster than it computes, so what was called may not have begun. Whoever gives a
device back, measures a part of its work or breaks off must know what is still to come: here, it is
never more than a few parts. To wait for every part would leave the device idle between them.
This module must not know what the work is.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Protocol

import torch


class DeviceQueue(Protocol):
    """What a device has been told and not yet done.

    Args:
        is_behind: What was told may not have been done.
    """

    is_behind: bool

    def mark(self, ahead: int) -> None:
        """Another part has been told: wait until no more than ``ahead`` are left."""
        ...

    def finish(self) -> None:
        """Wait until nothing is left."""
        ...


class HostQueue:
    """Of the processor itself: what was called has been done."""

    is_behind = False

    def mark(self, ahead: int) -> None:
        """Nothing is left."""

    def finish(self) -> None:
        """Nothing is left."""


class Event(Protocol):
    """A place among a device's work, as ``torch.cuda.Event``."""

    def record(self) -> None:
        """Put it behind all that was told so far."""
        ...

    def synchronize(self) -> None:
        """Wait until the device has come to it."""
        ...


class GpuQueue:
    """Of a GPU.

    Args:
        make: Makes an event.
    """

    is_behind = True

    def __init__(self, make: Callable[[], Event]) -> None:
        self._make = make
        self._told: deque[Event] = deque()
        self._spare: list[Event] = []

    def mark(self, ahead: int) -> None:
        """Wait for the last one but so many."""
        self._record()
        self._wait(ahead)

    def finish(self) -> None:
        """Wait for the last one."""
        self._record()
        self._wait(0)

    def _record(self) -> None:
        event = self._spare.pop() if self._spare else self._make()
        event.record()
        self._told.append(event)

    def _wait(self, left: int) -> None:
        while len(self._told) > left:
            event = self._told.popleft()
            event.synchronize()
            self._spare.append(event)


class _CudaEvent:
    """An event on the stream that a device's work goes to, whichever device is current."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._event = torch.cuda.Event()

    def record(self) -> None:
        self._event.record(torch.cuda.current_stream(self._device))

    def synchronize(self) -> None:
        self._event.synchronize()


def queue_of(device: str) -> DeviceQueue:
    """Return the queue of a device, as torch names it."""
    if not device.startswith("cuda"):
        return HostQueue()
    named = torch.device(device)
    return GpuQueue(lambda: _CudaEvent(named))
