"""What every transport of payloads promises: a writer leaves one, and only its handle travels.

The handle goes with the messages, on whatever carries these. Whoever has it gets the payload until
the writer frees it:

* ``get`` gives exactly what was put, or an error; never later than its deadline, and never the
  bytes of another payload, whatever was freed meanwhile.
* A handle that comes twice, or late, does no harm: it names a generation, not a place alone.
* Memory that is still being read is not used again, though it was freed. Where a read is a copy
  within one machine, the reader notices instead, and calls the payload lost.
* What nobody frees is bounded: where there is no room, ``put`` says so, and nothing is lost.

This module must not know what a payload is part of.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import msgspec

from duologue.core.errors import EngineError

Data = bytes | bytearray | memoryview


class Handle(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Where a payload lies.

    Args:
        place: Of which writer; in words of the transport.
        slot: Which of the writer's payloads.
        generation: How often any slot of this place was taken before: no two payloads share one.
        size_bytes: 0 is a payload, too.
    """

    place: str
    slot: int
    generation: int
    size_bytes: int


class Store(Protocol):
    """The writer's end.

    Concurrency:
        Belongs to one thread, but for what a transport says otherwise.
    """

    @property
    def held_bytes(self) -> int:
        """What lies here and was not freed, or is still being read."""
        ...

    def put(self, data: Data) -> Handle | None:
        """Leave a payload; ``None`` where there is no room for it now."""
        ...

    def free(self, handle: Handle) -> None:
        """Give up a payload: its handle was used, or never will be. A second time does nothing."""
        ...

    def close(self) -> None:
        """Leave nothing behind; what is still being read is kept until it has been."""
        ...


class Reader(Protocol):
    """The end of whoever was given a handle."""

    def get(self, handle: Handle, deadline: float) -> bytes:
        """Return a copy of a payload. The writer is to be told to free it, which this does not.

        Args:
            deadline: Until when this may wait, as ``Clock.now`` has it. A read that was given up
                leaves nothing behind: the next one begins anew.

        Raises:
            PayloadLost: It was freed, or its writer is gone.
            StageTimeout: The writer did not answer by the deadline.
        """
        ...

    def close(self) -> None:
        """Leave nothing behind."""
        ...


@runtime_checkable
class CountsReads(Protocol):
    """A store that keeps what is being read until its reader says that it was."""

    def reader_died(self, reader: str) -> None:
        """A reader certainly touches nothing any more, whatever it had begun.

        Args:
            reader: Its name.
        """
        ...


@runtime_checkable
class SettlesLater(Protocol):
    """A reader whose reads may go on when they were given up, and keep memory at the writer."""

    def settle(self, deadline: float) -> None:
        """See to the end of those, as far as it comes by the deadline; the next read does too."""
        ...


class PayloadLost(EngineError):
    """A payload cannot be had any more. Raised by readers; fails the request that needs it."""

    default_code = "payload_lost"


def lost(handle: Handle, why: str) -> PayloadLost:
    """Return the error of a payload that is not there."""
    return PayloadLost(f"a payload of {handle.size_bytes} bytes is not at {handle.place}: {why}")
