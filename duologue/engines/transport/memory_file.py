"""Memory that several processes map, without a name anywhere.

It is a file that only descriptors know (``memfd_create``), handed to a process over a socket. So
nothing is left of it when the last process that has it is gone, however that came about. It may
grow and never shrinks, which the kernel holds: a reader cannot be killed by a page that is gone.
This module must not know what lies in it.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import weakref

PAGE_BYTES = mmap.ALLOCATIONGRANULARITY


def is_available() -> bool:
    """Tell whether this system has such memory: Linux has."""
    return hasattr(os, "memfd_create") and hasattr(fcntl, "F_ADD_SEALS")


class MemoryFile:
    """A file in memory.

    Args:
        fd: Its descriptor, which belongs to this object from now on.
    """

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._closing = weakref.finalize(self, os.close, fd)

    @classmethod
    def create(cls, name: str) -> MemoryFile:
        """Make one of no size.

        Args:
            name: For people who look into ``/proc``.

        Raises:
            OSError: The system gives no descriptor.
        """
        fd = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
        return cls(fd)

    @property
    def size_bytes(self) -> int:
        """How large it is now; pages that were never written take no memory."""
        return os.fstat(self.fd).st_size

    @property
    def resident_bytes(self) -> int:
        """Memory that it takes."""
        return os.fstat(self.fd).st_blocks * 512

    def grow(self, size_bytes: int) -> int:
        """Add whole pages and return where they begin."""
        start = self.size_bytes
        pages = -(-size_bytes // PAGE_BYTES)
        os.ftruncate(self.fd, start + pages * PAGE_BYTES)
        return start

    def map(self, start: int, size_bytes: int, *, writable: bool) -> mmap.mmap:
        """Map a part of it, which begins at a page.

        Raises:
            ValueError: There is no such part.
        """
        if start < 0 or size_bytes <= 0 or start + size_bytes > self.size_bytes:
            raise ValueError(f"{size_bytes} bytes at {start} are no part of {self.size_bytes}")
        access = mmap.ACCESS_WRITE if writable else mmap.ACCESS_READ
        return mmap.mmap(self.fd, size_bytes, access=access, offset=start)

    def discard(self, start: int, size_bytes: int) -> None:
        """Give the memory of a part back to the system; it reads as zeros from now on."""
        with self.map(start, size_bytes, writable=True) as part:
            part.madvise(mmap.MADV_REMOVE)

    def close(self) -> None:
        """Close the descriptor; what is mapped stays mapped."""
        self._closing()
