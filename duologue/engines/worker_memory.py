"""How much memory a worker holds, itself and the processes that it has started.

This module must not know what is in it.
"""

from __future__ import annotations

import ctypes
import gc
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Held:
    """Memory at some moment.

    Args:
        resident_bytes: Of the host; 0 where the system does not say.
        device_bytes: That this process has taken of devices.
    """

    resident_bytes: int
    device_bytes: int


def held() -> Held:
    """Measure."""
    pages = sum(_resident_pages(pid) for pid in _family(os.getpid()))
    return Held(pages * os.sysconf("SC_PAGE_SIZE"), _device_bytes())


def give_back() -> None:
    """Hand back to the system and to devices what nobody uses, but libraries keep for later."""
    gc.collect()
    torch = _torch_on_gpu()
    if torch is not None:
        torch.cuda.empty_cache()
    if sys.platform == "linux":
        # Of the C library of most systems; others return memory by themselves.
        with suppress(AttributeError, OSError):
            ctypes.CDLL(None).malloc_trim(0)


def _family(pid: int) -> Iterator[int]:
    yield pid
    try:
        threads = list((_PROC / str(pid) / "task").iterdir())
    except OSError:
        return  # it has ended, or there is no such folder here
    for thread in threads:
        with suppress(OSError):
            for child in (thread / "children").read_text().split():
                yield from _family(int(child))


def _resident_pages(pid: int) -> int:
    try:
        return int((_PROC / str(pid) / "statm").read_text().split()[1])
    except (OSError, IndexError):
        return 0


def _device_bytes() -> int:
    torch = _torch_on_gpu()
    if torch is None:
        return 0
    count = torch.cuda.device_count()
    return sum(int(torch.cuda.memory_reserved(device)) for device in range(count))


def _torch_on_gpu() -> Any:
    """Return torch where this worker uses a GPU with it; it is not loaded for this."""
    torch = sys.modules.get("torch")
    return torch if torch is not None and torch.cuda.is_initialized() else None
