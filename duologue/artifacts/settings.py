"""Where weights are kept, and where they may come from."""

from __future__ import annotations

import os
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import Field, field_validator

from duologue.config import Section
from duologue.core.errors import ConfigError

CACHE_VARIABLE = "DUOLOGUE_CACHE"


class SourceKind(StrEnum):
    """A kind of place that weights come from."""

    FOLDER = "folder"
    HUB = "hub"
    PACKAGE = "package"


def default_cache_dir(environ: Mapping[str, str]) -> Path:
    """The cache of this person: ``DUOLOGUE_CACHE``, else the XDG cache folder."""
    chosen = environ.get(CACHE_VARIABLE)
    if chosen:
        return _at_home(Path(chosen)).absolute()
    # The XDG specification says that a relative path here is to be ignored.
    xdg = Path(environ.get("XDG_CACHE_HOME", ""))
    base = xdg if xdg.is_absolute() else _at_home(Path("~/.cache"))
    return base / "duologue"


def _at_home(path: Path) -> Path:
    try:
        return path.expanduser()
    except RuntimeError as exc:  # nobody has this name, or a user of a container has no home
        raise ConfigError(
            f"there is no home for {path}: name a folder in DUOLOGUE_CACHE, as /var/cache/duologue"
        ) from exc


class ArtifactSettings(Section):
    """Section ``artifacts``."""

    also_reads: ClassVar[frozenset[str]] = frozenset({CACHE_VARIABLE})

    cache_dir: Path = Field(default_factory=lambda: default_cache_dir(os.environ))
    """Folder that holds the weights. Moved by DUOLOGUE_CACHE as well."""

    sources: Annotated[tuple[SourceKind, ...], Field(min_length=1)] = (
        SourceKind.FOLDER,
        SourceKind.PACKAGE,
        SourceKind.HUB,
    )
    """Sources in the order in which they are asked."""

    folders: tuple[Path, ...] = ()
    """Local folders that hold FILE or ARTIFACT/FILE, for the source "folder"."""

    hub_url: str = "https://huggingface.co"
    """Base URL of the model hub, or of a mirror of it."""

    parallel_downloads: Annotated[int, Field(ge=1, le=16)] = 4
    """Files that are downloaded at the same time."""

    timeout_s: Annotated[float, Field(gt=0)] = 30.0
    """Silence of a server after which a download is taken up again."""

    retries: Annotated[int, Field(ge=0, le=100)] = 5
    """Times that a download is taken up again without a new byte, before it fails."""

    retry_wait_s: Annotated[float, Field(ge=0, le=60)] = 0.5
    """Wait before the first retry; doubled for each further one."""

    @field_validator("cache_dir")
    @classmethod
    def _expand(cls, value: Path) -> Path:
        try:
            return value.expanduser().absolute()
        except RuntimeError as exc:  # pydantic passes on what is no ValueError
            raise ValueError(str(exc)) from exc

    @field_validator("hub_url")
    @classmethod
    def _is_http(cls, value: str) -> str:
        if not value.startswith(("https://", "http://")):
            raise ValueError("must begin with https:// or http://")
        return value.rstrip("/")

    @field_validator("sources")
    @classmethod
    def _is_without_repeats(cls, value: tuple[SourceKind, ...]) -> tuple[SourceKind, ...]:
        if len(set(value)) != len(value):
            raise ValueError("names a source twice")
        return value
