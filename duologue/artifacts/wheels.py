"""Holds the wheels of one pull: each is loaded once, and removed after its last use."""

from __future__ import annotations

import threading
import zipfile
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Final

from duologue.artifacts.cache import Cache
from duologue.artifacts.download import Patience, Wanted, bytes_there, download, part_of
from duologue.artifacts.errors import AccessRefused, SourceUnavailable, WrongHash
from duologue.artifacts.files import CHUNK_BYTES, sha256_of
from duologue.artifacts.manifest import Wheel
from duologue.artifacts.package_index import PackageIndex
from duologue.artifacts.progress import ProgressSink

TAMPERED: Final = (
    "The package index gives another file than the one that was measured. Do not use it: try "
    "another index, or another source (--sources)."
)


class WheelShelf:
    """The wheels that one pull needs.

    Concurrency:
        Called from one thread per artifact; loads run on ``executor``.
    """

    def __init__(
        self,
        wheels: Sequence[Wheel],
        cache: Cache,
        index: PackageIndex,
        executor: Executor,
        patience: Patience,
        progress: ProgressSink,
        cancel: threading.Event,
    ) -> None:
        """``wheels`` names a wheel once for each artifact that will use it."""
        self._uses = Counter(wheel.name for wheel in wheels)
        self._wheels = {wheel.name: wheel for wheel in wheels}
        self._cache = cache
        self._index = index
        self._executor = executor
        self._patience = patience
        self._progress = progress
        self._cancel = cancel
        self._lock = threading.Lock()
        self._locating = threading.Lock()
        self._loads: dict[str, Future[Path]] = {}
        self._urls: dict[str, str] | None = None

    def order(self, name: str, purpose: str) -> Future[Path]:
        """Start to load a wheel, or join a load that runs; the file is verified.

        Args:
            purpose: What it is loaded for, in the words of the person who waits.
        """
        with self._lock:
            load = self._loads.get(name)
            if load is None:
                load = self._executor.submit(self._load, self._wheels[name], purpose)
                self._loads[name] = load
            return load

    def withdraw(self, name: str) -> None:
        """Drop a load that has not begun and that nobody else needs."""
        with self._lock:
            if self._uses[name] == 1 and name in self._loads:
                self._loads[name].cancel()

    def done_with(self, name: str) -> None:
        """Give up one use; the last one removes the file."""
        with self._lock:
            self._uses[name] -= 1
        self._remove_unused(name)

    def sweep(self) -> None:
        """Remove what a load brought after its last user was gone. Call when no load runs.

        A wheel whose user failed stays: the next pull need not load it again.
        """
        for name in self._wheels:
            self._remove_unused(name)

    def _remove_unused(self, name: str) -> None:
        with self._lock:
            is_used = self._uses[name] > 0
        if not is_used:
            path = self._path(self._wheels[name])
            path.unlink(missing_ok=True)
            part_of(path).unlink(missing_ok=True)

    def _path(self, wheel: Wheel) -> Path:
        return self._cache.downloads / wheel.file

    def _load(self, wheel: Wheel, purpose: str) -> Path:
        path = self._path(wheel)
        label = f"download {purpose}"
        wanted = Wanted(label, wheel.size_bytes, wheel.sha256)
        if path.is_file() and sha256_of(path) == wheel.sha256:
            return path
        url = self._locate().get(wheel.name)
        task = self._progress.begin(label, wheel.size_bytes, bytes_there(path))
        try:
            if url is not None:
                try:
                    download(url, path, wanted, self._patience, task, self._cancel)
                    return path
                except AccessRefused:
                    self._progress.say(f"{url} refuses a plain request; asking pip for the file")
            self._index.fetch(wheel, self._cache.downloads, task.at, self._cancel)
        finally:
            task.end()
        found = sha256_of(path)
        if found != wheel.sha256:
            path.unlink(missing_ok=True)
            raise WrongHash(
                f"{wheel.file} from pip", expected=wheel.sha256, found=found, advice=TAMPERED
            )
        return path

    def _locate(self) -> dict[str, str]:
        with self._locating:
            if self._urls is None:
                self._progress.say("asking the package index where the files lie")
                self._urls = self._index.locate(tuple(self._wheels.values()))
            return self._urls


def member_chunks(wheel: Path, member: str) -> Iterator[bytes]:
    """The bytes of one file inside a wheel, unpacked as they are read.

    Raises:
        SourceUnavailable: The wheel has no such file, or is no archive.
    """
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(member) as file:
            while chunk := file.read(CHUNK_BYTES):
                yield chunk
    except (KeyError, zipfile.BadZipFile) as exc:
        raise SourceUnavailable(f"{wheel.name} has no readable {member}: {exc}") from exc
