"""The folder that holds the weights: where each file lies in it, and who may write it now.

```text
CACHE/models/ARTIFACT/FILE      whole and verified; NOTICE.txt beside them
CACHE/downloads/FILE[.part]     on its way; gone once it is unpacked
CACHE/pull.lock                 held by the one process that pulls
```
"""

from __future__ import annotations

import fcntl
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from duologue.artifacts.errors import CacheError, PullCancelled, cache_error
from duologue.artifacts.manifest import Artifact, File

LOCK_POLL_S: Final = 0.2
NOTICE_NAME: Final = "NOTICE.txt"


class Cache:
    """One cache folder; knows paths, asks the disk, loads nothing."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @property
    def downloads(self) -> Path:
        """Where files lie on their way."""
        return self.root / "downloads"

    def folder(self, artifact: Artifact) -> Path:
        """Where the files of an artifact lie."""
        return self.root / "models" / artifact.id

    def file(self, artifact: Artifact, file: File) -> Path:
        """Where one file lies."""
        return self.folder(artifact) / file.name

    def notice(self, artifact: Artifact) -> Path:
        """Where the licences of an artifact are written."""
        return self.folder(artifact) / NOTICE_NAME

    def free_bytes(self) -> int:
        """Room on the disk of the cache, which need not exist yet."""
        folder = self.root
        while not folder.is_dir() and folder != folder.parent:
            folder = folder.parent
        return shutil.disk_usage(folder).free

    def require_room(self, needed_bytes: int) -> None:
        """Refuse work that would fill the disk.

        Raises:
            CacheError: There is less room than that.
        """
        free = self.free_bytes()
        if free < needed_bytes:
            raise CacheError(
                f"{self.root} has {free / 1e6:,.0f} MB free, and this pull needs "
                f"{needed_bytes / 1e6:,.0f} MB. Make room there, or set DUOLOGUE_CACHE to a folder "
                "on a larger disk."
            )

    @contextmanager
    def one_writer(self, on_wait: Callable[[], None], cancel: threading.Event) -> Iterator[None]:
        """Hold the lock of this cache; wait for another process that has it.

        The kernel lets go of it when its holder ends, however that ends.

        Raises:
            CacheError: The folder cannot be written.
            PullCancelled: ``cancel`` was set while waiting.
        """
        path = self.root / "pull.lock"
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as exc:
            raise cache_error(exc, self.root) from exc
        try:
            if not _try_lock(descriptor):
                on_wait()
                while not _try_lock(descriptor):
                    if cancel.wait(LOCK_POLL_S):
                        raise PullCancelled("the pull was stopped while it waited for another one")
            yield
        finally:
            os.close(descriptor)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
