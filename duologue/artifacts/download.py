"""Gets one file over HTTP into the cache, and goes on where an earlier try broke off.

What has arrived lies in FILE.part and stays there after a failure. Only a file whose size and
sha256 are the expected ones gets its name. This module must not know what the file is for.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import socket
import ssl
import threading
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final
from urllib.parse import unquote, urlsplit

from duologue.artifacts.errors import (
    AccessRefused,
    ArtifactError,
    PullCancelled,
    SourceUnavailable,
    WrongHash,
    cache_error,
)
from duologue.artifacts.progress import ProgressTask

READ_BYTES: Final = 1 << 18
LONGEST_WAIT_S: Final = 8.0
REFUSALS: Final = frozenset({401, 403, 407})
WORTH_A_RETRY: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
RANGE_NOT_SATISFIABLE: Final = 416
STOPPED: Final = "the pull was stopped; the same command goes on from here"


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a download tries."""

    timeout_s: float
    retries: int
    retry_wait_s: float


@dataclass(frozen=True, slots=True)
class Wanted:
    """The file that must come out, and how to call it before people."""

    label: str
    size_bytes: int
    sha256: str


def download(
    url: str,
    target: Path,
    wanted: Wanted,
    patience: Patience,
    task: ProgressTask,
    cancel: threading.Event,
) -> None:
    """Fetch ``url`` into ``target``.

    Raises:
        SourceUnavailable: The server does not give it, or not all of it. What came is kept.
        AccessRefused: The server wants a password, or its certificate is not trusted.
        WrongHash: It gave something else. Nothing was kept.
        PullCancelled: ``cancel`` was set. What came is kept.
        CacheError: The disk is full or read-only.
    """
    if cancel.is_set():
        raise PullCancelled(STOPPED)
    part = part_of(target)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with part.open("ab") as file:
            _Download(url, part, file, wanted, patience, task, cancel).run()
            os.fsync(file.fileno())
        os.replace(part, target)
    except ArtifactError as exc:
        if isinstance(exc, WrongHash) or not part.stat().st_size:
            part.unlink(missing_ok=True)
        raise
    except OSError as exc:
        raise cache_error(exc, target) from exc


def part_of(target: Path) -> Path:
    """Where the bytes of an unfinished file lie."""
    return target.with_name(target.name + ".part")


def bytes_there(target: Path) -> int:
    """How much of an unfinished file an earlier try left."""
    try:
        return part_of(target).stat().st_size
    except OSError:
        return 0


class _Download:
    """The state of one download: a file that grows, and the hash of what is in it."""

    def __init__(
        self,
        url: str,
        part: Path,
        file: IO[bytes],
        wanted: Wanted,
        patience: Patience,
        task: ProgressTask,
        cancel: threading.Event,
    ) -> None:
        self._url = url
        self._part = part
        self._file = file
        self._wanted = wanted
        self._patience = patience
        self._task = task
        self._cancel = cancel
        self._digest = hashlib.sha256()
        self._have_bytes = 0
        self._most_bytes = 0

    def run(self) -> None:
        """Bring the file to its full length, and check it."""
        began_with_bytes = self._take_up_part()
        self._receive()
        if self._is_wrong() and began_with_bytes:
            # What lay there may have been of another file, so the doubt is in its favour once.
            self._start_over()
            self._receive()
        if self._is_wrong():
            raise WrongHash(
                f"{self._wanted.label} from {self._url}",
                expected=self._wanted.sha256,
                found=self._digest.hexdigest(),
                advice="The server, or something on the way, gives another file than the one that "
                "was measured. Try again from another network, or another source (--sources).",
            )

    def _is_wrong(self) -> bool:
        return self._digest.hexdigest() != self._wanted.sha256

    def _take_up_part(self) -> int:
        lies_there_bytes = self._part.stat().st_size
        if lies_there_bytes > self._wanted.size_bytes:
            self._start_over()
            return 0
        with self._part.open("rb") as file:
            while self._have_bytes < lies_there_bytes and (chunk := file.read(READ_BYTES)):
                self._digest.update(chunk)
                self._have_bytes += len(chunk)
        self._task.at(self._have_bytes)
        return self._have_bytes

    def _start_over(self) -> None:
        self._file.truncate(0)
        self._digest = hashlib.sha256()
        self._have_bytes = 0
        self._task.at(0)

    def _receive(self) -> None:
        """Ask until all bytes are there; a try that got further than any other is no failure."""
        failures = 0
        while self._have_bytes < self._wanted.size_bytes:
            try:
                self._ask_once()
                reason = f"it ended after {self._have_bytes} of {self._wanted.size_bytes} bytes"
            except _Broken as exc:
                reason = str(exc)
            if self._have_bytes >= self._wanted.size_bytes:
                return
            failures = 1 if self._have_bytes > self._most_bytes else failures + 1
            self._most_bytes = max(self._most_bytes, self._have_bytes)
            if failures > self._patience.retries:
                raise SourceUnavailable(
                    f"{self._url}: {reason}; gave up after {failures} tries without a new byte. "
                    "What came is kept: the same command goes on from there."
                )
            wait_s = min(self._patience.retry_wait_s * 2 ** (failures - 1), LONGEST_WAIT_S)
            if self._cancel.wait(wait_s):
                raise PullCancelled(STOPPED)

    def _ask_once(self) -> None:
        if urlsplit(self._url).scheme == "file":
            self._copy_local()
            return
        headers = {"User-Agent": "duologue", "Accept-Encoding": "identity"}
        if self._have_bytes:
            headers["Range"] = f"bytes={self._have_bytes}-"
        request = urllib.request.Request(self._url, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=self._patience.timeout_s) as answer:
                self._refuse_other_length(answer)
                if self._have_bytes and not _continues_at(answer, self._have_bytes):
                    self._start_over()
                self._copy(answer)
        except urllib.error.HTTPError as exc:
            exc.close()
            self._judge_status(exc)
        except urllib.error.URLError as exc:
            if isinstance(exc.reason, ssl.SSLCertVerificationError):
                raise AccessRefused(
                    f"{self._url}: its certificate is not trusted here "
                    f"({exc.reason.verify_message}). Set SSL_CERT_FILE to the certificates that "
                    "this network needs."
                ) from exc
            if isinstance(exc.reason, socket.gaierror) and not self._have_bytes:
                raise SourceUnavailable(
                    f"{self._url}: this name is unknown here ({exc.reason.strerror}). "
                    "Is there a network, and does it reach that server?"
                ) from exc
            raise _Broken(str(exc.reason)) from exc
        except (OSError, http.client.HTTPException) as exc:
            raise _Broken(str(exc) or type(exc).__name__) from exc

    def _refuse_other_length(self, answer: http.client.HTTPResponse) -> None:
        announced = _announced_bytes(answer)
        if announced is not None and announced != self._wanted.size_bytes:
            raise SourceUnavailable(
                f"{self._url}: the server announces {announced} bytes where "
                f"{self._wanted.size_bytes} are expected: another file, or the login page of a "
                "network"
            )

    def _judge_status(self, exc: urllib.error.HTTPError) -> None:
        status = f"{exc.code} {exc.reason}".strip()
        if exc.code == RANGE_NOT_SATISFIABLE and self._have_bytes:
            self._start_over()
            raise _Broken(status) from exc
        if exc.code in REFUSALS:
            raise AccessRefused(f"{self._url}: the server refuses us: {status}") from exc
        if exc.code in WORTH_A_RETRY:
            raise _Broken(status) from exc
        raise SourceUnavailable(f"{self._url}: the server says {status}") from exc

    def _copy_local(self) -> None:
        """An index may be a folder of this machine; pip then names a file."""
        path = Path(unquote(urlsplit(self._url).path))
        self._start_over()
        try:
            source = path.open("rb")
        except OSError as exc:
            raise SourceUnavailable(f"{path}: {exc.strerror}") from exc
        with source:
            self._copy(source)

    def _copy(self, source: IO[bytes] | http.client.HTTPResponse) -> None:
        while chunk := source.read(READ_BYTES):
            if self._cancel.is_set():
                raise PullCancelled(STOPPED)
            room = self._wanted.size_bytes - self._have_bytes
            self._keep(chunk[:room])
            self._digest.update(chunk)
            self._have_bytes += min(len(chunk), room)
            self._task.at(self._have_bytes)
            if len(chunk) > room:
                # Longer than it may be: the hash has the surplus and is wrong by it.
                return

    def _keep(self, chunk: bytes) -> None:
        try:
            self._file.write(chunk)
            self._file.flush()
        except OSError as exc:
            raise cache_error(exc, self._part) from exc


class _Broken(Exception):
    """The connection failed in a way that may be gone at the next try."""


def _continues_at(answer: http.client.HTTPResponse, offset_bytes: int) -> bool:
    """Whether the server honoured our range; one that did not sends the whole file."""
    given = answer.headers.get("Content-Range", "")
    return answer.status == http.HTTPStatus.PARTIAL_CONTENT and given.startswith(
        f"bytes {offset_bytes}-"
    )


def _announced_bytes(answer: http.client.HTTPResponse) -> int | None:
    """The length of the whole file, if the server tells it."""
    if answer.status == http.HTTPStatus.PARTIAL_CONTENT:
        length = answer.headers.get("Content-Range", "").rpartition("/")[2]
    else:
        length = answer.headers.get("Content-Length", "")
    return int(length) if length.isdigit() else None
