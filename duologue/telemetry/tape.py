"""Recordings of whole calls: lines that go to disk in the background, within a bound.

The loop hands over blocks of lines and waits for nothing. A call whose disk is full or slow loses
its recording, and nothing else. This module must not know what a line says.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path

from duologue.telemetry.flight import SUFFIX
from duologue.telemetry.logging import get_logger

BLOCK_BYTES = 64 * 1024
"""Written at once: a call of 20 ms frames fills it in some seconds."""

MAX_WAITING_BYTES = 8 << 20
"""Of all calls, on the way to the disk. A disk that is slower than that loses recordings."""


class Tape:
    """The recording of one call.

    Concurrency:
        Belongs to the event loop.
    """

    def __init__(self, write: Callable[[bytes], bool], content: bool) -> None:
        self.content = content
        """Whether what was said may stand in it."""

        self._write = write
        self._lines = bytearray()
        self._through = False
        self._finished = False

    def add(self, line: bytes) -> None:
        """Add a line, which has no line break."""
        if self._through:
            return
        self._lines += line
        self._lines += b"\n"
        if self._finished or len(self._lines) >= BLOCK_BYTES:
            self._flush()

    def finish(self) -> None:
        """The call is over: what comes from now on is written at once."""
        self._finished = True
        self._flush()

    def _flush(self) -> None:
        block, self._lines = bytes(self._lines), bytearray()
        if block and not self._through:
            self._through = not self._write(block)


class Recordings:
    """The folder of recordings: the newest, within a number of files and of bytes.

    Args:
        max_bytes: Of all files together; a single call that has filled it is recorded no further.
    """

    def __init__(self, folder: Path, *, max_files: int, max_bytes: int, content: bool) -> None:
        self._folder = folder
        self._max_files = max_files
        self._max_bytes = max_bytes
        self._content = content
        self._waiting_bytes = 0
        self._failed = False
        self._log = get_logger("recordings")
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="recordings")

    def tape(self, name: str) -> Tape:
        """Begin to record a call; its file appears with its first block."""
        return Tape(partial(self._hand_over, self._folder / f"{name}{SUFFIX}"), self._content)

    @property
    def waiting_bytes(self) -> int:
        """What is on its way to the disk; at most ``MAX_WAITING_BYTES``."""
        return self._waiting_bytes

    def close(self) -> None:
        """Wait until everything is on disk."""
        self._thread.shutdown()

    def _hand_over(self, path: Path, block: bytes) -> bool:
        if self._failed or self._waiting_bytes + len(block) > MAX_WAITING_BYTES:
            if not self._failed:
                self._log.warning("recording_given_up", file=path.name, reason="disk_too_slow")
            return False
        self._waiting_bytes += len(block)
        self._thread.submit(self._append, path, block).add_done_callback(
            partial(self._written, len(block))
        )
        return True

    def _written(self, size: int, done: Future[None]) -> None:
        # In the writing thread. Addition of ints is not atomic with the loop's, and need not be
        # exact: it only tells a slow disk from a good one.
        self._waiting_bytes = max(0, self._waiting_bytes - size)
        exc = done.exception()
        if exc is not None and not self._failed:
            self._failed = True
            self._log.error("recordings_stopped", error=type(exc).__name__)

    def _append(self, path: Path, block: bytes) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        self._make_room(path, len(block))
        size = path.stat().st_size if path.exists() else 0
        if size + len(block) <= self._max_bytes:
            with path.open("ab") as file:
                file.write(block)

    def _make_room(self, path: Path, size: int) -> None:
        """Let the oldest go until a block has room; the file it belongs to stays."""
        files = [(file, file.stat()) for file in self._folder.glob(f"*{SUFFIX}") if file != path]
        files.sort(key=lambda pair: pair[1].st_mtime_ns)
        own = path.stat().st_size if path.exists() else 0
        total = own + size + sum(stat.st_size for _, stat in files)
        while files and (len(files) + 1 > self._max_files or total > self._max_bytes):
            oldest, stat = files.pop(0)
            oldest.unlink(missing_ok=True)
            total -= stat.st_size
