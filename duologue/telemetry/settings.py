"""Settings of what Duologue says about itself."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from duologue.config import Section


class TelemetrySettings(Section):
    """Logs and the flight recorder."""

    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """The least serious line that is written."""

    log_format: Literal["auto", "json", "console"] = "auto"
    """JSON lines or text for people; auto is text on a terminal and JSON elsewhere."""

    log_private: bool = False
    """Keep the keys that begin with `pii.`: transcripts, prompts, foreign error texts."""

    flight_entries: Annotated[int, Field(ge=0, le=100_000)] = 1024
    """Inputs and effects that each session remembers, about 30 s of a call; 0 records nothing."""

    flight_folder: Path | None = None
    """Where a session's last seconds are written after an internal error; unset, nowhere."""

    flight_files: Annotated[int, Field(ge=1, le=10_000)] = 50
    """Recordings kept in that folder; the oldest go."""

    traces: bool = False
    """Write one OpenTelemetry trace for each turn; needs the extra `otel`. Where they go is said by
    `OTEL_EXPORTER_OTLP_ENDPOINT` and OpenTelemetry's other variables."""

    record: Literal["off", "sizes", "content"] = "off"
    """Record whole calls, for `duologue replay`: with the lengths of text and audio, or with what
    was said, too. Content is for machines of your own, with the consent of those who talk to it."""

    record_folder: Path = Path("recordings")
    """Where they are written."""

    record_files: Annotated[int, Field(ge=1, le=100_000)] = 100
    """Recordings kept there; the oldest go."""

    record_bytes: Annotated[int, Field(ge=1 << 20)] = 256 << 20
    """All of them together; the oldest go, and a call that fills it alone is recorded no further.
    A minute takes about 1.6 MB with lengths, 12 MB with content."""
