"""What can go wrong with weights; every message says what to do next.

```text
ArtifactError
  UnknownArtifact       no such id in the manifest
  ArtifactMissing       not in the cache; pull it
  WrongHash             the bytes are not the ones that we measured; refused
  SourceUnavailable     one source cannot give it; the next one is asked
    AccessRefused       the server wants something that only pip may know
  ArtifactUnavailable   no source could give it
  CacheError            the cache cannot be written: full, read-only, not ours
  PullCancelled         somebody asked to stop; what was loaded stays for the next try
  PullFailed            several artifacts of one pull failed; holds each error
```
"""

from __future__ import annotations

import errno
from collections.abc import Sequence
from pathlib import Path

from duologue.core.errors import ConfigError, DuologueError

READ_ONLY_ERRNOS = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})
FULL_ERRNOS = frozenset({errno.ENOSPC, errno.EDQUOT})


class ArtifactError(DuologueError):
    """Base of this package's errors. Raised at start or by ``duologue models``, never in a call."""


class UnknownArtifact(ArtifactError, ConfigError):
    """The manifest has no artifact of that id. Correct the setting or the command."""


class ArtifactMissing(ArtifactError):
    """The artifact is not on disk, and nothing is fetched now. Run the command in the message."""


class WrongHash(ArtifactError):
    """The bytes differ from the pinned ones. They were removed; nothing may load them."""

    def __init__(self, what: str, *, expected: str, found: str, advice: str) -> None:
        super().__init__(
            f"{what} has the wrong sha256 and was refused:\n"
            f"  expected {expected}\n"
            f"  found    {found}\n"
            f"{advice}",
            details={"expected": expected, "found": found},
        )


class SourceUnavailable(ArtifactError):
    """One source cannot give the artifact. Caught by the pull, which asks the next source."""


class AccessRefused(SourceUnavailable):
    """The server refused us, or we do not trust it. pip may know a password or a certificate."""


class ArtifactUnavailable(ArtifactError):
    """No source could give the artifact. The message has the reason of each."""


class CacheError(ArtifactError):
    """The cache cannot be written. Make room, or set ``DUOLOGUE_CACHE`` to another folder."""


class PullCancelled(ArtifactError):
    """The pull was stopped on request. Run it again; it goes on where it stopped."""


class PullFailed(ArtifactError):
    """Several artifacts failed; the others are in place."""

    def __init__(self, errors: Sequence[ArtifactError]) -> None:
        super().__init__("\n\n".join(error.message for error in errors))
        self.errors = tuple(errors)


def cache_error(exc: OSError, path: Path) -> CacheError:
    """Say what an ``OSError`` on a path of the cache means for the person."""
    reason = exc.strerror or str(exc)
    if exc.errno in FULL_ERRNOS:
        advice = "Make room there, or set DUOLOGUE_CACHE to a folder on a larger disk."
    elif exc.errno in READ_ONLY_ERRNOS:
        advice = (
            "Set DUOLOGUE_CACHE to a folder that you may write, or pull once as its owner: "
            "reading a complete cache needs no write access."
        )
    else:
        advice = "Set DUOLOGUE_CACHE to a folder that you may write."
    return CacheError(f"cannot write {path}: {reason}. {advice}", details={"errno": exc.errno})
