"""Writes files that are whole and right, or not there at all."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from duologue.artifacts.errors import WrongHash, cache_error

CHUNK_BYTES = 1 << 20

Watch = Callable[[int], None]
"""Told the bytes done so far; may raise to stop the work."""


def sha256_of(path: Path, watch: Watch = lambda done_bytes: None) -> str:
    """Hash a whole file."""
    digest = hashlib.sha256()
    done_bytes = 0
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            digest.update(chunk)
            done_bytes += len(chunk)
            watch(done_bytes)
    return digest.hexdigest()


def write_verified(
    target: Path,
    chunks: Iterable[bytes],
    *,
    what: str,
    expected: str,
    size_bytes: int,
    advice: str,
    watch: Watch = lambda done_bytes: None,
) -> None:
    """Write ``target`` from ``chunks`` if their hash is the expected one; replaces what was there.

    Raises:
        WrongHash: It is not, or there were more than ``size_bytes``. Nothing was kept.
        CacheError: The disk is full or read-only. Nothing was kept.
    """
    part = target.with_name(target.name + ".part")
    digest = hashlib.sha256()
    done_bytes = 0
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with part.open("wb") as file:
            for chunk in chunks:
                done_bytes += len(chunk)
                if done_bytes > size_bytes:
                    break
                file.write(chunk)
                digest.update(chunk)
                watch(done_bytes)
            file.flush()
            os.fsync(file.fileno())
        found = digest.hexdigest() if done_bytes <= size_bytes else f"more than {size_bytes} bytes"
        if found != expected:
            raise WrongHash(what, expected=expected, found=found, advice=advice)
        put_in_place(part, target)
    except OSError as exc:
        raise cache_error(exc, target) from exc
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def put_in_place(part: Path, target: Path) -> None:
    """Give a complete file its name, so that the name survives a power cut too."""
    os.replace(part, target)
    folder = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
