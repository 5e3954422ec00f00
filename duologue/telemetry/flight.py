"""A recording on disk: JSON lines, a header with the version of the format, then the entries.

It must not know how entries are collected, nor how they are replayed.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from duologue.core.errors import CodecError
from duologue.telemetry.logging import get_logger
from duologue.telemetry.recorder import Direction, Entry

VERSION = 1
SUFFIX = ".flight.jsonl"


@dataclass(frozen=True, slots=True)
class Flight:
    """The last seconds of one session.

    Args:
        reason: Stable name of what went wrong.
        ended_at: Wall time of the recording, seconds since 1970.
    """

    session_id: str
    reason: str
    ended_at: float
    entries: Sequence[Entry]


class _Header(msgspec.Struct, frozen=True, tag_field="format", tag="duologue.flight"):
    version: int
    session_id: str
    reason: str
    ended_at: float
    entries: int


class _Line(msgspec.Struct, frozen=True, omit_defaults=True):
    at_s: float
    dir: Direction
    kind: str
    bytes: int = 0
    sample: int = 0
    epoch: int = 0


def encode_flight(flight: Flight) -> bytes:
    """Write a recording as JSON lines."""
    header = _Header(
        VERSION, flight.session_id, flight.reason, flight.ended_at, len(flight.entries)
    )
    lines = (
        _Line(round(e.at_s, 5), e.direction, e.kind, e.size_bytes, e.sample, e.epoch)
        for e in flight.entries
    )
    return msgspec.json.Encoder().encode_lines([header, *lines])


def decode_flight(data: bytes) -> Flight:
    """Read a recording back.

    Raises:
        CodecError: This is no recording, it is cut off, or it is of another version.
    """
    first, _, rest = data.partition(b"\n")
    try:
        header = msgspec.json.decode(first, type=_Header)
    except msgspec.DecodeError as exc:
        raise CodecError("the first line is no header of a flight recording") from exc
    if header.version != VERSION:
        raise CodecError(f"the recording has version {header.version}; only {VERSION} can be read")
    try:
        lines = msgspec.json.Decoder(_Line).decode_lines(rest)
    except msgspec.DecodeError as exc:
        raise CodecError("a line of the recording cannot be read") from exc
    if len(lines) != header.entries:
        raise CodecError(f"the recording has {len(lines)} of {header.entries} entries")
    entries = tuple(Entry(x.at_s, x.dir, x.kind, x.bytes, x.sample, x.epoch) for x in lines)
    return Flight(header.session_id, header.reason, header.ended_at, entries)


def write_flight(flight: Flight, folder: Path, *, max_files: int) -> Path:
    """Keep a recording in ``folder``, and there the newest ``max_files`` only.

    Concurrency:
        Waits for the disk: call it in a thread.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{flight.ended_at:.3f}-{flight.session_id}{SUFFIX}"
    try:
        path.write_bytes(encode_flight(flight))
    except OSError:
        path.unlink(missing_ok=True)  # half of one cannot be read, and would push out a whole one
        raise
    _tidy(folder, max_files)
    return path


def keep_flight(flight: Flight, folder: Path, *, max_files: int) -> None:
    """Write a recording if the disk takes it, and say so if it does not; see ``write_flight``."""
    try:
        write_flight(flight, folder, max_files=max_files)
    except OSError as exc:
        get_logger("telemetry").warning(
            "flight_not_written", session_id=flight.session_id, error=os.strerror(exc.errno or 0)
        )


def _tidy(folder: Path, max_files: int) -> None:
    kept = sorted(folder.glob(f"*{SUFFIX}"), key=lambda file: file.stat().st_mtime_ns)
    for old in kept[:-max_files]:
        old.unlink(missing_ok=True)
