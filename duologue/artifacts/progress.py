"""Shows a pull while it goes on. Must not know what is pulled or from where."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol, TextIO

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)
from rich.table import Column

from duologue.core.clock import Clock, SystemClock

LINE_EVERY_FRACTION = 0.25
MEGABYTE = 1_000_000
NO_LINE_BELOW_BYTES = 10 * MEGABYTE


class ProgressTask(Protocol):
    """One download, one extraction or one check."""

    def at(self, done_bytes: int) -> None:
        """Say how far it is; may fall back when a download starts over."""
        ...

    def end(self) -> None:
        """Say that it is over, well or badly."""
        ...


class ProgressSink(Protocol):
    """Whoever watches a pull. Called from several threads at once."""

    def begin(self, label: str, total_bytes: int, done_bytes: int = 0) -> ProgressTask:
        """Announce work on ``total_bytes``, of which ``done_bytes`` are there from before."""
        ...

    def say(self, line: str) -> None:
        """Show a line that stays."""
        ...


class Silence:
    """Shows nothing."""

    def begin(self, label: str, total_bytes: int, done_bytes: int = 0) -> ProgressTask:
        """Accept and forget."""
        return _SilentTask()

    def say(self, line: str) -> None:
        """Accept and forget."""


class _SilentTask:
    def at(self, done_bytes: int) -> None:
        pass

    def end(self) -> None:
        pass


class Lines:
    """Plain lines, a few for each task that takes a while: for logs and pipes."""

    def __init__(self, stream: TextIO, clock: Clock) -> None:
        self._stream = stream
        self._clock = clock
        self._lock = threading.Lock()

    def begin(self, label: str, total_bytes: int, done_bytes: int = 0) -> ProgressTask:
        """Print the first line of a task, unless it is too small to wait for."""
        if total_bytes < NO_LINE_BELOW_BYTES:
            return _SilentTask()
        so_far = f", {_megabytes(done_bytes)} there" if done_bytes else ""
        self.say(f"{label}: {_megabytes(total_bytes)}{so_far}")
        return _LineTask(self, label, total_bytes, done_bytes, self._clock)

    def say(self, line: str) -> None:
        """Print a line."""
        with self._lock:
            print(line, file=self._stream, flush=True)


class _LineTask:
    def __init__(
        self, lines: Lines, label: str, total_bytes: int, done_bytes: int, clock: Clock
    ) -> None:
        self._lines = lines
        self._label = label
        self._total_bytes = max(total_bytes, 1)
        self._start_bytes = self._done_bytes = done_bytes
        self._clock = clock
        self._started_s = clock.now()
        self._next_fraction = done_bytes / self._total_bytes + LINE_EVERY_FRACTION

    def at(self, done_bytes: int) -> None:
        if done_bytes < self._done_bytes:
            self._start_bytes = done_bytes
            self._started_s = self._clock.now()
            self._next_fraction = LINE_EVERY_FRACTION
        self._done_bytes = done_bytes
        fraction = done_bytes / self._total_bytes
        if fraction >= self._next_fraction:
            self._next_fraction = fraction + LINE_EVERY_FRACTION
            elapsed_s = self._clock.now() - self._started_s
            rate = (done_bytes - self._start_bytes) / elapsed_s if elapsed_s > 0 else 0
            speed = f" at {_megabytes(rate)}/s" if rate else ""
            self._lines.say(f"{self._label}: {fraction:.0%}, {_megabytes(done_bytes)}{speed}")

    def end(self) -> None:
        pass


class Bars:
    """Live bars on a terminal, one for each task."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def begin(self, label: str, total_bytes: int, done_bytes: int = 0) -> ProgressTask:
        """Add a bar."""
        task = self._progress.add_task(label, total=total_bytes, completed=done_bytes)
        return _BarTask(self._progress, task)

    def say(self, line: str) -> None:
        """Print a line above the bars."""
        self._progress.console.print(line, markup=False, highlight=False)


class _BarTask:
    def __init__(self, progress: Progress, task: TaskID) -> None:
        self._progress = progress
        self._task = task

    def at(self, done_bytes: int) -> None:
        self._progress.update(self._task, completed=done_bytes)

    def end(self) -> None:
        self._progress.remove_task(self._task)


@contextmanager
def shown_on(stream: TextIO | None = None, clock: Clock | None = None) -> Iterator[ProgressSink]:
    """Bars where ``stream`` (standard error by default) is a terminal, else lines."""
    stream = stream or sys.stderr
    if not stream.isatty():
        yield Lines(stream, clock or SystemClock())
        return
    columns = (
        TextColumn("{task.description}", markup=False, table_column=Column(ratio=1, no_wrap=True)),
        BarColumn(bar_width=16),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(file=stream), transient=True, expand=True) as progress:
        yield Bars(progress)


def _megabytes(size_bytes: float) -> str:
    return f"{size_bytes / MEGABYTE:,.1f} MB"
