"""The files of jobs: whole or not there at all.

A result is written beside its place and put there at the end, so that a server that is killed
leaves no half one. All methods wait for the disk: call them in a thread. This module must not know
records.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Collection
from pathlib import Path
from typing import IO

from duologue.core.errors import ConfigError

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

    def begin(self, job_id: str) -> IO[bytes]:
        """Open the result of a job for writing, anew."""
        return (self.folder / f"{job_id}{_PARTIAL}").open("wb")

    def finish(self, job_id: str, file: IO[bytes]) -> int:
        """Put a result in its place; returns its size."""
        file.flush()
        os.fsync(file.fileno())
        size = file.tell()
        file.close()
        partial = self.folder / f"{job_id}{_PARTIAL}"
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
