"""A small settings tree with every kind of value that the loader has to deal with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import Field, SecretStr

from duologue.config import Section


class LimitsSettings(Section):
    """A section inside a section."""

    max_message_bytes: Annotated[int, Field(ge=1)] = 1_000_000
    """Largest message taken."""


class DoorSettings(Section):
    """Where callers come in."""

    host: str = "127.0.0.1"
    """Address to listen on."""

    port: Annotated[int, Field(ge=1, le=65535)] = 8080
    """Port to listen on."""

    api_keys: tuple[SecretStr, ...] = ()
    """Keys that are let in."""

    certificate: Path | None = None
    """TLS certificate."""

    limits: LimitsSettings = LimitsSettings()


class WorkshopSettings(Section):
    """Where the work is done."""

    also_reads: ClassVar[frozenset[str]] = frozenset({"DUOLOGUE_WORKSHOP_HOME"})

    folders: tuple[Path, ...] = ()
    """Searched in this order."""

    weights: dict[str, Path] = Field(default_factory=dict)
    """Overrides by name."""

    slots: dict[str, int] = Field(default_factory=lambda: {"voice": 4})
    """Room by class of work."""


class FakeRoot(Section):
    """The root that the tests load."""

    door: DoorSettings = DoorSettings()
    workshop: WorkshopSettings = WorkshopSettings()
