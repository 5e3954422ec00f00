"""A gateway of its own in a child process: started, watched while it loads, and stopped.

This module must not know what is said to it.
"""

from __future__ import annotations

import asyncio
import re
import signal
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

from duologue.core.errors import DuologueError

START_TIMEOUT_S = 300.0
STOP_TIMEOUT_S = 10.0
POLL_S = 0.1
SHOWN_LINES = 12

_READY = re.compile(r"ready: (https?://\S+)")


class ServerFailed(DuologueError):
    """The gateway did not start, or died; the message holds its last words."""

    default_code = "server_failed"


@dataclass(frozen=True, slots=True)
class WorkerReady:
    """A model is loaded."""

    worker: str
    took_s: float


class _LogLine(msgspec.Struct):
    event: str = ""
    worker: str = ""
    took_s: float = 0.0


OnProgress = Callable[[WorkerReady], None]


def read_progress(line: str) -> WorkerReady | None:
    """Return what a line of the server's log says about loading, if it does."""
    try:
        entry = msgspec.json.decode(line, type=_LogLine)
    except msgspec.MsgspecError:
        return None
    if entry.event != "worker_ready" or not entry.worker:
        return None
    return WorkerReady(entry.worker, entry.took_s)


@asynccontextmanager
async def running_server(
    log: Path,
    on_progress: OnProgress,
    *,
    arguments: Sequence[str] = (),
    start_timeout_s: float = START_TIMEOUT_S,
) -> AsyncIterator[str]:
    """Run a gateway on a free port; yields its URL once it is ready.

    Args:
        log: File that takes its log.
        arguments: Further ones of ``duologue serve``.

    Raises:
        ServerFailed: It did not get ready.
    """
    command = (sys.executable, "-m", "duologue", "serve", "--gateway.port", "0", *arguments)
    with log.open("wb") as written:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=written,
        )
    try:
        try:
            async with asyncio.timeout(start_timeout_s):
                url = await _ready_url(process, log, on_progress)
        except TimeoutError as exc:
            words = await asyncio.to_thread(_last_words, log)
            raise ServerFailed(
                f"the gateway was not ready within {start_timeout_s:.0f} s. {words}"
            ) from exc
        yield url
    finally:
        await _stop(process)


async def _ready_url(
    process: asyncio.subprocess.Process, log: Path, on_progress: OnProgress
) -> str:
    with log.open(encoding="utf-8", errors="replace") as lines:
        line = ""
        while True:
            is_over = process.returncode is not None
            while piece := lines.readline():
                line += piece
                if not line.endswith("\n"):
                    break
                progress = read_progress(line)
                if progress is not None:
                    on_progress(progress)
                ready = _READY.search(line)
                if ready is not None:
                    return ready[1]
                line = ""
            if is_over:
                words = await asyncio.to_thread(_last_words, log)
                raise ServerFailed(f"the gateway ended before it was ready. {words}")
            await asyncio.sleep(POLL_S)


async def _stop(process: asyncio.subprocess.Process) -> None:
    if process.returncode is not None:
        return
    # Twice: the second one says that no call is to be waited for.
    for _ in range(2):
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
    try:
        async with asyncio.timeout(STOP_TIMEOUT_S):
            await process.wait()
    except TimeoutError:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def _last_words(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    words = [line.rstrip() for line in lines if line.strip()][-SHOWN_LINES:]
    if not words:
        return "It said nothing."
    return "Its last words:\n  " + "\n  ".join(words)
