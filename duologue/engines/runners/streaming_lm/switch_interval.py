"""How soon the thread of a loop gets the interpreter back from others of its process."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

SWITCH_INTERVAL_S = 0.0005
"""Each time a step has waited for the device, its thread must get the interpreter back, which
another one keeps for as long as this. With the interpreter's own 5 ms, a worker's thread that packs
messages makes a step longer by that for every wait in it; a switch itself takes some 10 us."""


class _Lowered:
    """The one setting of this interpreter, and how many threads want it low."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._wanted = 0
        self._before_s = 0.0

    def enter(self) -> None:
        with self._lock:
            self._wanted += 1
            if self._wanted == 1:
                self._before_s = sys.getswitchinterval()
                sys.setswitchinterval(min(SWITCH_INTERVAL_S, self._before_s))

    def leave(self) -> None:
        with self._lock:
            self._wanted -= 1
            if not self._wanted:
                sys.setswitchinterval(self._before_s)


_LOWERED = _Lowered()


@contextmanager
def prompt_switches() -> Iterator[None]:
    """Let threads of this interpreter take turns quickly, until the last one that asked is done.

    Concurrency:
        From any thread.
    """
    _LOWERED.enter()
    try:
        yield
    finally:
        _LOWERED.leave()
