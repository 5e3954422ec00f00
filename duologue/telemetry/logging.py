"""Structured logs: constant event names, values under keys, private values dropped.

An event is a snake_case name that stands in the code, as in
``log.info("response_started", ttfa_ms=212)``; what varies goes under keys, and what somebody said
goes under keys that begin with ``pii.``, which the pipeline drops unless it is told otherwise.
This module must not know who logs.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Literal, TextIO, TypeAlias, cast

import structlog
from structlog.contextvars import bound_contextvars, merge_contextvars
from structlog.typing import EventDict, FilteringBoundLogger, Processor

from duologue.core.clock import Clock, SystemClock
from duologue.core.errors import DuologueError

PRIVATE_PREFIX = "pii."
"""Keys for what a person said, a prompt, a token, or an exception that we did not write."""

WARNINGS_PER_MINUTE = 10
"""Of one name. A peer that misbehaves must not fill the disk; the rest is counted."""

_MAX_WARNING_NAMES = 256
_INNERMOST_FRAMES = 20

Logger: TypeAlias = FilteringBoundLogger
Level: TypeAlias = Literal["debug", "info", "warning", "error"]
LogFormat: TypeAlias = Literal["auto", "json", "console"]


def get_logger(part: str) -> Logger:
    """Return the logger of one part of Duologue, as ``get_logger("gateway")``."""
    return cast(Logger, structlog.get_logger(part=part))


@contextmanager
def bound(**values: str | int) -> Iterator[None]:
    """Add keys to every line that this task, and the tasks it starts, log meanwhile."""
    with bound_contextvars(**values):
        yield


def configure_logging(
    *,
    level: Level = "info",
    log_format: LogFormat = "auto",
    keep_private: bool = False,
    stream: TextIO | None = None,
    clock: Clock | None = None,
) -> None:
    """Set the pipeline up for this process, and lead the standard library's logs into it.

    Args:
        level: The least serious line that is written.
        log_format: ``auto`` is text for people on a terminal and JSON elsewhere.
        keep_private: Write the keys that begin with ``pii.``.
        stream: Where lines go; the standard error stream unless given.
        clock: Tells the time of a line.
    """
    out = stream if stream is not None else sys.stderr
    for_people = log_format == "console" or (log_format == "auto" and out.isatty())
    time = clock if clock is not None else SystemClock()
    renderer: Processor = (
        structlog.dev.ConsoleRenderer(colors=out.isatty())
        if for_people
        else structlog.processors.JSONRenderer()
    )
    pipeline: list[Processor] = [
        merge_contextvars,
        structlog.processors.add_log_level,
        Timestamp(time),
        RateLimit(time),
        render_exception,
        *([] if keep_private else [drop_private]),
        renderer,
    ]
    threshold = logging.getLevelNamesMapping()[level.upper()]
    structlog.configure(
        processors=pipeline,
        wrapper_class=structlog.make_filtering_bound_logger(threshold),
        logger_factory=structlog.WriteLoggerFactory(out),
        cache_logger_on_first_use=False,  # a logger at module level must follow a new pipeline
    )
    root = logging.getLogger()
    root.handlers[:] = [ForeignHandler()]
    root.setLevel(max(threshold, logging.WARNING))


def drop_private(_: object, __: str, event: EventDict) -> EventDict:
    """Remove every key that begins with ``pii.``."""
    for key in [key for key in event if key.startswith(PRIVATE_PREFIX)]:
        del event[key]
    return event


def render_exception(_: object, __: str, event: EventDict) -> EventDict:
    """Replace ``exc_info`` by where it happened and of what type; its text is private.

    The text of a foreign exception may quote what somebody said; ours may quote a client.
    """
    given = event.pop("exc_info", None)
    error = sys.exc_info()[1] if given is True else given[1] if isinstance(given, tuple) else given
    if isinstance(error, BaseException):
        event["error"] = type(error).__name__
        if isinstance(error, DuologueError):
            event["error_code"] = error.code
        event["traceback"] = _frames(error.__traceback__)
        if error.__cause__ is not None:
            event["cause"] = type(error.__cause__).__name__
        event[PRIVATE_PREFIX + "error_text"] = str(error)
    return event


@dataclass(frozen=True)
class Timestamp:
    """Adds the wall time, in UTC."""

    clock: Clock

    def __call__(self, _: object, __: str, event: EventDict) -> EventDict:
        """Stamp one line."""
        event["timestamp"] = _utc(self.clock.wall_time())
        return event


class RateLimit:
    """Lets a few warnings of each name pass in a minute, and says how many it held back.

    Only warnings are limited: they are a peer's doing, so a peer decides how many there are.
    """

    def __init__(self, clock: Clock, per_minute: int = WARNINGS_PER_MINUTE) -> None:
        self._clock = clock
        self._per_minute = per_minute
        self._windows: dict[str, _Window] = {}

    def __call__(self, _: object, method: str, event: EventDict) -> EventDict:
        """Pass one line on, or drop it.

        Raises:
            structlog.DropEvent: Enough of this name in this minute.
        """
        if method != "warning":
            return event
        name = f"{event.get('part')}.{event.get('event')}"
        now = self._clock.now()
        window = self._windows.get(name)
        if window is None:
            if len(self._windows) >= _MAX_WARNING_NAMES:
                self._windows.clear()
            window = self._windows[name] = _Window(now)
        elif now >= window.started + 60.0:
            if window.held_back:
                event["held_back"] = window.held_back
            self._windows[name] = window = _Window(now)
        if window.passed >= self._per_minute:
            window.held_back += 1
            raise structlog.DropEvent
        window.passed += 1
        return event


@dataclass
class _Window:
    started: float
    passed: int = 0
    held_back: int = 0


class ForeignHandler(logging.Handler):
    """Leads lines of libraries that use the standard library's logging into our pipeline.

    Their texts were not written with our rules in mind, so they are private; the name of the
    library and the constant part of the message are not.
    """

    def emit(self, record: logging.LogRecord) -> None:
        """Log one foreign line."""
        values: dict[str, Any] = {
            "part": record.name,
            PRIVATE_PREFIX + "message": record.getMessage(),
        }
        if record.args:
            values["template"] = str(record.msg)
        if record.exc_info:
            values["exc_info"] = record.exc_info
        level = "warning" if record.levelno < logging.ERROR else "error"
        getattr(structlog.get_logger(), level)("foreign_log", **values)


def _frames(traceback: TracebackType | None) -> list[str]:
    frames = []
    while traceback is not None:
        code = traceback.tb_frame.f_code
        frames.append(f"{code.co_filename}:{traceback.tb_lineno} {code.co_qualname}")
        traceback = traceback.tb_next
    return frames[-_INNERMOST_FRAMES:]


def _utc(wall_time: float) -> str:
    return datetime.fromtimestamp(wall_time, UTC).isoformat(timespec="milliseconds")
