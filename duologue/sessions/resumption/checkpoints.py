"""Conversations on disk, so that the words of a call outlive the process that holds it.

One small file for each resumable session: its settings, what was said in words, whose it is, and
hashes of its tokens. No sound, nor tokens. Whoever shows the token after the process has died goes
on in a new session, as after the age limit. This module must not know connections.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

from duologue.sessions.history.inheritance import Inheritance
from duologue.sessions.owners import Owner
from duologue.sessions.resumption.lease import Tokens
from duologue.sessions.resumption.past import Kept
from duologue.sessions.resumption.succession import left_by
from duologue.sessions.session import Session
from duologue.sessions.via import Via
from duologue.telemetry import get_logger

VERSION = 1
SUFFIX = ".checkpoint"


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    """One conversation.

    Args:
        saved_at: Unix seconds.
        tokens: Hashes of the tokens that open it.
    """

    version: int = VERSION
    saved_at: float
    tokens: tuple[bytes, bytes]
    inheritance: Inheritance
    owner: Owner
    via: Via

    def kept(self, until: float) -> Kept:
        """Return it as something that a client may go on with."""
        tokens = Tokens.of_hashes(*self.tokens)
        return Kept(tokens, self.inheritance, self.owner, self.via, until)


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Checkpoint).decode


def checkpoint_of(session: Session, wall_time: float) -> bytes | None:
    """Return a session's conversation as it is now; ``None`` where nobody could go on with it."""
    lease = session.lease
    if lease is None:
        return None
    return _encode(
        Checkpoint(
            saved_at=wall_time,
            tokens=lease.tokens.hashes,
            inheritance=left_by(session),
            owner=session.owner,
            via=session.via,
        )
    )


@dataclass(frozen=True, slots=True)
class CheckpointFolder:
    """Where they are. Its methods read and write files: not for the event loop.

    Args:
        max_files: When there are more, the oldest go.
        max_bytes: Of one; a longer conversation is not kept.
        max_age_s: Older ones are not read any more, and removed.
    """

    path: Path
    max_files: int
    max_bytes: int
    max_age_s: float

    def write(self, session_id: str, data: bytes) -> None:
        """Put a file in the place of an earlier one: there is always a whole one."""
        if len(data) > self.max_bytes:
            self.remove(session_id)
            get_logger("checkpoints").warning("checkpoint_too_large", size_bytes=len(data))
            return
        target = self._file(session_id)
        part = target.with_suffix(".part")
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
            part.replace(target)
        except OSError as exc:
            # The call goes on; what it would need after a crash is as old as the disk is full.
            get_logger("checkpoints").error("checkpoint_not_written", reason=exc.strerror)

    def remove(self, session_id: str) -> None:
        """Forget a session that has ended."""
        with suppress(OSError):
            self._file(session_id).unlink()

    def load(self, wall_time: float) -> list[Checkpoint]:
        """Return what there is, and remove what is too old, too much, or no checkpoint."""
        return list(self._load(wall_time))

    def _load(self, wall_time: float) -> Iterator[Checkpoint]:
        files = sorted(self.path.glob(f"*{SUFFIX}"), key=_changed_at, reverse=True)
        for file in self.path.glob("*.part"):
            _unlink(file)
        for place, file in enumerate(files):
            checkpoint = self._read(file) if place < self.max_files else None
            if checkpoint is None or wall_time - checkpoint.saved_at > self.max_age_s:
                _unlink(file)
            else:
                yield checkpoint

    def _read(self, file: Path) -> Checkpoint | None:
        try:
            if file.stat().st_size > self.max_bytes:
                return None
            checkpoint = _decode(file.read_bytes())
        except (OSError, msgspec.MsgspecError, ValueError):
            return None
        return checkpoint if checkpoint.version == VERSION else None

    def _file(self, session_id: str) -> Path:
        # Ids are ours, yet a name of a file is made of nothing that was ever on the wire.
        return self.path / (hashlib.sha256(session_id.encode()).hexdigest()[:40] + SUFFIX)


def _changed_at(file: Path) -> float:
    try:
        return file.stat().st_mtime
    except OSError:
        return 0.0


def _unlink(file: Path) -> None:
    with suppress(OSError):
        file.unlink()
