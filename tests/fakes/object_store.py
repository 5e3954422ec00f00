"""The simplest transport of payloads: objects of one process, by their handles.

For tests of what takes any transport. It passes the suite of all of them, so what the suite asks
can be had without memory files or sockets.
"""

from __future__ import annotations

from duologue.engines.transport.port import Data, Handle, lost
from duologue.engines.transport.slots import Slots

PLACE = "here"
MAX_PAYLOADS = 4096


class ObjectStore:
    """Writer and reader in one.

    Args:
        max_bytes: How much may be held.
    """

    def __init__(self, max_bytes: int) -> None:
        self.held_bytes = 0
        self._max_bytes = max_bytes
        self._slots = Slots(PLACE, MAX_PAYLOADS)
        self._objects: dict[int, Data] = {}

    def put(self, data: Data) -> Handle | None:
        """Keep a payload; ``None`` if there is no room."""
        if self.held_bytes + len(data) > self._max_bytes:
            return None
        handle = self._slots.add(len(data))
        if handle is not None:
            self.held_bytes += len(data)
            self._objects[handle.slot] = data
        return handle

    def free(self, handle: Handle) -> None:
        """Keep a payload no longer."""
        self._forget(self._slots.free(handle))

    def get(self, handle: Handle, deadline: float = 0.0) -> bytes:
        """Return a payload: the same object, where it is ``bytes``.

        Raises:
            PayloadLost: It was freed.
        """
        if not self._slots.holds(handle):
            raise lost(handle, "it was freed")
        return bytes(self._objects[handle.slot])

    def close(self) -> None:
        """Free everything."""
        self._forget(self._slots.free_all())

    def _forget(self, handles: list[Handle]) -> None:
        for handle in handles:
            self.held_bytes -= handle.size_bytes
            del self._objects[handle.slot]
