"""Settings of stored jobs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field

from duologue.config import Section


class JobSettings(Section):
    """Long work, as videos, that is kept on disk until somebody fetches it."""

    folder: Path | None = None
    """Where records and files are kept, of one server alone; the folder ``jobs`` in the cache
    unless set. Only used where a pipeline makes videos."""

    max_running: Annotated[int, Field(ge=1, le=1024)] = 2
    """Jobs that are worked on at a time."""

    max_queued: Annotated[int, Field(ge=0, le=100_000)] = 64
    """Jobs that may wait; further ones are refused with 503."""

    max_attempts: Annotated[int, Field(ge=1, le=100)] = 2
    """How often a job is begun, the server having died before it was over; then it has failed."""

    keep_s: Annotated[float, Field(gt=0)] = 24 * 3600.0
    """A finished job, its file with it, is kept for so long."""

    max_bytes: Annotated[int, Field(ge=1 << 20)] = 16 << 30
    """All files together; the oldest finished jobs make room."""
