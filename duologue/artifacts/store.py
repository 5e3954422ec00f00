"""Knows which weights are on this machine and where; the one door for those who load them.

``path`` is for the code that starts a model: it looks and never fetches. Only ``pull`` fetches,
and only ``duologue models pull`` calls it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from importlib import metadata
from pathlib import Path

from duologue.artifacts.cache import Cache
from duologue.artifacts.errors import (
    ArtifactError,
    ArtifactMissing,
    PullFailed,
    WrongHash,
)
from duologue.artifacts.files import sha256_of
from duologue.artifacts.manifest import Artifact, File, Kind, Manifest, load_manifest
from duologue.artifacts.package_index import PackageIndex, Pip
from duologue.artifacts.progress import ProgressSink, Silence
from duologue.artifacts.published import find
from duologue.artifacts.pull import Pull
from duologue.artifacts.settings import ArtifactSettings
from duologue.core.installation import duologue_command, install_command


class State(StrEnum):
    """What is on this machine, as its file sizes tell."""

    READY = "ready"
    MISSING = "missing"
    INCOMPLETE = "incomplete"


@dataclass(frozen=True, slots=True)
class Status:
    """One artifact and its state here. ``path`` is where it is, or would be."""

    artifact: Artifact
    state: State
    path: Path | None


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of a check by hash; no problems means that every byte is right."""

    artifact: Artifact
    problems: tuple[ArtifactError, ...]


class Store:
    """The weights of this machine.

    Args:
        settings: Where the cache is, and the sources of ``pull``.
        manifest: What there is; the list of this version by default.
        index: pip, for the source ``package``.
    """

    def __init__(
        self,
        settings: ArtifactSettings,
        manifest: Manifest | None = None,
        index: PackageIndex | None = None,
    ) -> None:
        self._settings = settings
        self.manifest = manifest or load_manifest()
        self._index = index or Pip()
        self._cache = Cache(settings.cache_dir)

    @property
    def cache_dir(self) -> Path:
        """The folder that holds the weights."""
        return self._cache.root

    def path(self, artifact_id: str) -> Path:
        """What a runner opens: the artifact's entry file, or its folder. Never fetches.

        Raises:
            UnknownArtifact: No such id.
            ArtifactMissing: It is not here; the message has the command that brings it.
        """
        artifact = self.manifest.get(artifact_id)
        state = self._state(artifact)
        if state is State.READY:
            return self._entry(artifact)
        if artifact.kind is Kind.LIBRARY:
            raise _not_installed(artifact)
        raise ArtifactMissing(
            f"{artifact.id} is {state} in {self._cache.root}. Get it "
            f"({artifact.size_bytes / 1e6:,.0f} MB) with: {_pull_command([artifact])}"
        )

    def local(self, name: str) -> Path:
        """A file or folder below one of the local folders; the first that has it. No hash is known.

        Raises:
            ArtifactMissing: None has it.
        """
        folders = self._settings.folders
        for folder in folders:
            if (found := folder.expanduser() / name).exists():
                return found
        looked = ", ".join(str(folder) for folder in folders) or "any folder, since none is set"
        known = find(name.partition("/")[0])
        advice = "" if known is None else f".\n{known.how_to_get()}"
        raise ArtifactMissing(
            f"there is no {name} in {looked}. It cannot be pulled: fetch it from its publisher, as"
            f" docs/operations.md says, and name the folder above it in artifacts.folders{advice}"
        )

    def check(self, ids: Iterable[str]) -> None:
        """Look for all that somebody needs.

        Raises:
            UnknownArtifact: No such id.
            ArtifactMissing: Weights are not here. Names all of them, so that one command is enough.
        """
        missing = [
            artifact
            for artifact in map(self.manifest.get, sorted(ids))
            if artifact.kind is Kind.WEIGHTS and self._state(artifact) is not State.READY
        ]
        if len(missing) > 1:
            size_mb = sum(artifact.size_bytes for artifact in missing) / 1e6
            raise ArtifactMissing(
                f"{', '.join(artifact.id for artifact in missing)} are missing in "
                f"{self._cache.root}. Get them ({size_mb:,.0f} MB) with: {_pull_command(missing)}"
            )
        for artifact in missing:
            self.path(artifact.id)

    def pull(
        self,
        ids: Sequence[str],
        progress: ProgressSink | None = None,
        cancel: threading.Event | None = None,
    ) -> None:
        """Bring the artifacts onto this machine; what is there already is left alone.

        Raises:
            ArtifactError: Something is missing after this. The message says what, why and what
                to do. Artifacts that could be had are in place all the same.
        """
        artifacts = self._artifacts(ids)
        watcher = progress or Silence()
        errors: list[ArtifactError] = []
        weights = [artifact for artifact in artifacts if artifact.kind is Kind.WEIGHTS]
        try:
            Pull(
                self._settings, self.manifest, self._index, watcher, cancel or threading.Event()
            ).run(weights)
        except PullFailed as exc:
            errors += exc.errors
        except ArtifactError as exc:
            errors.append(exc)
        for artifact in artifacts:
            if self._state(artifact) is not State.READY and artifact.kind is Kind.LIBRARY:
                errors.append(_not_installed(artifact))
        if len(errors) == 1:
            raise errors[0]
        if errors:
            raise PullFailed(errors)

    def verify(
        self, ids: Sequence[str], progress: ProgressSink | None = None
    ) -> tuple[Verdict, ...]:
        """Hash every file of the artifacts; a wrong one in the cache is removed.

        Raises:
            UnknownArtifact: No such id.
        """
        watcher = progress or Silence()
        return tuple(
            Verdict(artifact, tuple(self._problems(artifact, watcher)))
            for artifact in self._artifacts(ids)
        )

    def status(self) -> tuple[Status, ...]:
        """Every artifact of the manifest. Looks at file sizes alone, so it is quick."""
        return tuple(
            Status(artifact, self._state(artifact), self._entry_or_none(artifact))
            for artifact in self.manifest.artifacts
        )

    def _artifacts(self, ids: Sequence[str]) -> tuple[Artifact, ...]:
        return tuple(self.manifest.get(each) for each in dict.fromkeys(ids))

    def _state(self, artifact: Artifact) -> State:
        sizes = [_size_bytes(self._place(artifact, file)) for file in artifact.files]
        if all(size == file.size_bytes for size, file in zip(sizes, artifact.files, strict=True)):
            return State.READY
        return State.MISSING if not any(sizes) else State.INCOMPLETE

    def _place(self, artifact: Artifact, file: File) -> Path | None:
        """Where a file is, or would be; None where its library is not installed."""
        if artifact.kind is Kind.WEIGHTS:
            return self._cache.file(artifact, file)
        assert artifact.distribution is not None
        assert file.member is not None
        try:
            distribution = metadata.distribution(artifact.distribution)
        except metadata.PackageNotFoundError:
            return None
        return Path(str(distribution.locate_file(file.member)))

    def _entry(self, artifact: Artifact) -> Path:
        entry = self._entry_or_none(artifact)
        assert entry is not None, "asked for the entry of something that is not here"
        return entry

    def _entry_or_none(self, artifact: Artifact) -> Path | None:
        if artifact.entry is None:
            first = self._place(artifact, artifact.files[0])
            return None if first is None else first.parent
        file = next(file for file in artifact.files if file.name == artifact.entry)
        return self._place(artifact, file)

    def _problems(self, artifact: Artifact, progress: ProgressSink) -> Iterable[ArtifactError]:
        state = self._state(artifact)
        if state is not State.READY:
            yield (
                _not_installed(artifact)
                if artifact.kind is Kind.LIBRARY
                else ArtifactMissing(
                    f"{artifact.id} is {state}; get it with: {_pull_command([artifact])}"
                )
            )
            return
        for file in artifact.files:
            path = self._place(artifact, file)
            assert path is not None
            task = progress.begin(f"check {artifact.id} {file.name}", file.size_bytes)
            try:
                found = sha256_of(path, task.at)
            finally:
                task.end()
            if found != file.sha256:
                advice = _reinstall(artifact)
                if artifact.kind is Kind.WEIGHTS:
                    advice = _remove(path, artifact)
                yield WrongHash(str(path), expected=file.sha256, found=found, advice=advice)


def _size_bytes(path: Path | None) -> int | None:
    if path is None:
        return None
    try:
        return path.stat().st_size if path.is_file() else None
    except OSError:
        return None


def _pull_command(artifacts: Sequence[Artifact]) -> str:
    return duologue_command(f"models pull {' '.join(artifact.id for artifact in artifacts)}")


def _not_installed(artifact: Artifact) -> ArtifactMissing:
    wanted = f"{artifact.distribution}=={artifact.upstream.revision}"
    return ArtifactMissing(
        f"{artifact.id} is part of {wanted}, which is not installed, or another version is. "
        f"Install it with: {install_command('duologue[local]')}"
    )


def _reinstall(artifact: Artifact) -> str:
    wanted = f"{artifact.distribution}=={artifact.upstream.revision}"
    return f"Install it anew with: pip install --force-reinstall --no-deps {wanted}"


def _remove(path: Path, artifact: Artifact) -> str:
    anew = f"get it anew with: {_pull_command([artifact])}"
    try:
        path.unlink()
    except OSError as exc:
        return f"It cannot be removed ({exc.strerror}): do that, then {anew}"
    return f"It was removed; {anew}"
