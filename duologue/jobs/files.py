"""The files of jobs: whole or not there at all.

A result is written beside its place and put there at the end, so that a server that is killed
leaves no half one. All methods wait for the disk: call them in a thread. This module must not know
records.
"""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from duologue.core.errors import CapacityError, ConfigError
from duologue.protocol.errors import ErrorCode

RETRY_S = 60.0
"""A disk that is full is not for long, since results are kept for a while only."""

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_RESULT = ".result"
_PARTIAL = ".partial"


class JobFiles:
    """A folder of one server.

    Args:
        folder: Is made where there is none.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock: IO[bytes] | None = None

    def open(self) -> None:
        """Take the folder.

        Raises:
            ConfigError: Another server has it, or it cannot be written.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock = (self.folder / "lock").open("wb")
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as exc:
            self.close()
            raise ConfigError(
                f"jobs.folder: {self.folder} belongs to another server that runs; give each its own"
            ) from exc
        except OSError as exc:
            self.close()
            raise ConfigError(f"jobs.folder: {self.folder}: {exc.strerror}") from exc

    def close(self) -> None:
        """Let the folder go."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def begin(self, job_id: str) -> None:
        """Begin the result of a job, anew.

        Raises:
            CapacityError: The disk is full. Also of the two below.
        """
        with _says_when_full():
            self._partial(job_id).write_bytes(b"")

    def write(self, job_id: str, data: bytes) -> None:
        """Add to a result."""
        with _says_when_full(), self._partial(job_id).open("r+b") as file:
            file.seek(0, os.SEEK_END)
            file.write(data)

    def finish(self, job_id: str) -> int:
        """Put a result in its place; returns its size."""
        partial = self._partial(job_id)
        with _says_when_full(), partial.open("r+b") as file:
            os.fsync(file.fileno())
            size = file.seek(0, os.SEEK_END)
        partial.rename(self.folder / f"{job_id}{_RESULT}")
        return size

    def result(self, job_id: str, start: int = 0) -> IO[bytes]:
        """Open the result of a job at a byte; what is open can be read though it is removed."""
        file = (self.folder / f"{job_id}{_RESULT}").open("rb")
        file.seek(start)
        return file

    def remove(self, job_id: str) -> None:
        """Remove what there is of a job."""
        for suffix in (_RESULT, _PARTIAL):
            (self.folder / f"{job_id}{suffix}").unlink(missing_ok=True)

    def keep_only(self, job_ids: Collection[str]) -> None:
        """Remove the results of all other jobs, and all that are not whole."""
        for path in self.folder.iterdir():
            is_result = path.suffix == _RESULT and path.stem in job_ids
            if path.suffix in (_RESULT, _PARTIAL) and not is_result:
                path.unlink(missing_ok=True)

    def _partial(self, job_id: str) -> Path:
        return self.folder / f"{job_id}{_PARTIAL}"


def no_room(what: str) -> CapacityError:
    """Return what is said where the disk takes no more."""
    return CapacityError(
        f"the disk has no room for {what}", retry_after_s=RETRY_S, code=ErrorCode.STORAGE_FULL
    )


@contextmanager
def _says_when_full() -> Iterator[None]:
    try:
        yield
    except OSError as exc:
        if exc.errno in _FULL:
            raise no_room("the result") from exc
        raise
