"""Models that a person fetches from their publisher: what is known of them, and what is here.

The list is ``published.yaml``. Its hashes are not measured by us, and some files have none: then a
check says what it found, and that there is nothing to hold it against. Nothing is ever fetched.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from importlib import resources
from pathlib import Path

import msgspec
import yaml

from duologue.artifacts.errors import ArtifactMissing
from duologue.artifacts.files import sha256_of
from duologue.artifacts.manifest import FullCommit, PlainName, Sha256, SizeBytes
from duologue.artifacts.progress import ProgressSink


class PublishedFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file as its publisher names it.

    Args:
        size_bytes, sha256: As others have published them; ``None``: not known here.
        unpacked: The folder that this archive becomes. Where it is, the archive may be gone.
    """

    name: PlainName
    size_bytes: SizeBytes | None = None
    sha256: Sha256 | None = None
    unpacked: PlainName | None = None


class Published(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One model.

    Args:
        id: Also the name of its folder, below one of ``artifacts.folders``.
        pipeline: The one that runs it.
        upstream: Its repository on the hub; ``revision``: a full commit of it.
        gated: Only who has accepted the licence on ``page``, and is logged in, gets the files.
    """

    id: PlainName
    pipeline: str
    role: str
    description: str
    licence: str
    upstream: str
    revision: FullCommit
    page: str
    files: tuple[PublishedFile, ...]
    gated: bool = False

    @property
    def size_bytes(self) -> int | None:
        """Size on disk; ``None`` where that of a file is not known."""
        sizes = [file.size_bytes for file in self.files if file.size_bytes is not None]
        return sum(sizes) if len(sizes) == len(self.files) else None

    def how_to_get(self) -> str:
        """Tell a person what to do."""
        steps = []
        if self.gated:
            steps.append(
                f"  1. open {self.page} with an account of the hub and accept the licence"
                f" ({self.licence})\n"
                "  2. hf auth login    (a token that may read; Duologue never sees it)"
            )
        number = 3 if self.gated else 1
        steps.append(
            f"  {number}. hf download {self.upstream} --revision {self.revision}"
            f" --local-dir FOLDER/{self.id}"
        )
        unpack = [file.name for file in self.files if file.unpacked]
        steps += [
            f"  {number + 1}. tar -xzf FOLDER/{self.id}/{name} -C FOLDER/{self.id}"
            for name in unpack
        ]
        steps.append(
            f"  {number + 1 + len(unpack)}. name FOLDER in artifacts.folders"
            " (DUOLOGUE_ARTIFACTS__FOLDERS='[\"FOLDER\"]')"
        )
        licence = "" if self.gated else f"; its licence is {self.licence}"
        return f"{self.id} is fetched by you, from its publisher{licence}:\n" + "\n".join(steps)


class Finding(StrEnum):
    """What a check found of a file."""

    RIGHT = "right"
    WRONG = "wrong"
    MISSING = "missing"
    UNPACKED = "unpacked"
    """The archive is not here, what was in it is: nothing is known of its bytes."""

    UNKNOWN = "unknown"
    """Here, and no hash is known to hold it against."""


@dataclass(frozen=True, slots=True)
class Checked:
    """One file after a check; ``text`` is for a person."""

    file: PublishedFile
    finding: Finding
    text: str

    @property
    def failed(self) -> bool:
        """The model cannot, or must not, be used."""
        return self.finding in (Finding.WRONG, Finding.MISSING)


def load_published() -> tuple[Published, ...]:
    """Return the list that ships with this version."""
    text = resources.files("duologue.artifacts").joinpath("published.yaml").read_text("utf-8")
    return parse_published(text)


def parse_published(text: str) -> tuple[Published, ...]:
    """Read a list.

    Raises:
        msgspec.ValidationError: It does not have the form.
    """
    return msgspec.convert(yaml.safe_load(text), tuple[Published, ...])


def find(id_or_pipeline: str) -> Published | None:
    """Return the model of that id, or of that pipeline."""
    known = load_published()
    return next((each for each in known if id_or_pipeline in (each.id, each.pipeline)), None)


def place(model: Published, folders: Sequence[Path]) -> Path | None:
    """Return where a model lies: the first folder that has anything of it."""
    places = (folder.expanduser() / model.id for folder in folders)
    return next((each for each in places if each.is_dir()), None)


def state(model: Published, folders: Sequence[Path]) -> str:
    """Say what is here, without reading it."""
    at = place(model, folders)
    if at is None:
        return "not here"
    there = [_is_there(at, file) for file in model.files]
    return "here" if all(there) else f"incomplete, {sum(there)} of {len(there)} files"


def check(model: Published, folders: Sequence[Path], progress: ProgressSink) -> Iterator[Checked]:
    """Hash every file that is here; nothing is removed, since none of it is ours.

    Raises:
        ArtifactMissing: None of its files is in any of the folders; says how to get them.
    """
    at = place(model, folders)
    if at is None:
        looked = ", ".join(map(str, folders)) or "no folder, since artifacts.folders names none"
        raise ArtifactMissing(f"{model.id} is not here (looked in {looked}).\n{model.how_to_get()}")
    for file in model.files:
        yield _check(at, file, progress)


def _check(at: Path, file: PublishedFile, progress: ProgressSink) -> Checked:
    path = at / file.name
    if not path.is_file():
        if _is_there(at, file):
            text = f"unpacked in {file.unpacked}; the archive is gone, so its hash was not checked"
            return Checked(file, Finding.UNPACKED, text)
        return Checked(file, Finding.MISSING, f"missing in {at}")
    size_bytes = path.stat().st_size
    if file.size_bytes is not None and size_bytes != file.size_bytes:
        text = f"wrong: it has {size_bytes:,} bytes instead of {file.size_bytes:,}"
        return Checked(file, Finding.WRONG, text)
    task = progress.begin(f"check {file.name}", size_bytes)
    try:
        found = sha256_of(path, task.at)
    finally:
        task.end()
    if file.sha256 is None:
        text = f"no hash is known here to hold it against; its sha256 is {found}"
        return Checked(file, Finding.UNKNOWN, text)
    if found != file.sha256:
        return Checked(file, Finding.WRONG, f"wrong: its sha256 is {found}, not {file.sha256}")
    return Checked(file, Finding.RIGHT, "right")


def _is_there(at: Path, file: PublishedFile) -> bool:
    if (at / file.name).is_file():
        return True
    return file.unpacked is not None and (at / file.unpacked).is_dir()
