"""Where workers run, one executor a file, found by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from duologue.engines.executors.base import Executor
from duologue.engines.executors.inline import InlineExecutor
from duologue.engines.executors.process import ProcessExecutor
from duologue.engines.settings import EngineSettings

EXECUTORS: Mapping[str, Callable[[EngineSettings], Executor]] = {
    "inline": lambda _settings: InlineExecutor(),
    "process": lambda _settings: ProcessExecutor(),
}
"""Name in a pipeline -> maker. ``inline``: a thread of this process, for tests and for code that is
tiny or leaves the interpreter. ``process``: a process of its own, which may crash, be killed, and
compute in Python, all alone."""
