"""Where workers run, one executor a file, found by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING

from duologue.core.errors import ConfigError
from duologue.core.installation import install_command
from duologue.engines.executors.base import Executor
from duologue.engines.executors.inline import InlineExecutor
from duologue.engines.executors.process import ProcessExecutor

if TYPE_CHECKING:
    # Not needed by processes that only hold a worker, and the heaviest of all imports here.
    from duologue.engines.settings import EngineSettings


def ray_executor(settings: EngineSettings, *, package: str = "ray") -> Executor:
    """Make the executor ``ray``; Ray itself is loaded by processes of its own alone.

    Raises:
        ConfigError: ``package`` is not installed.
    """
    if find_spec(package) is None:
        raise ConfigError(
            "a stage has the executor 'ray', and the package is not installed: "
            f"{install_command('duologue[ray]')}; or give the stage the executor 'process'"
        )
    from duologue.engines.executors.ray.executor import RayExecutor

    return RayExecutor(settings.ray)


EXECUTORS: Mapping[str, Callable[[EngineSettings], Executor]] = {
    "inline": lambda _settings: InlineExecutor(),
    "process": lambda _settings: ProcessExecutor(),
    "ray": ray_executor,
}
"""Name in a pipeline -> maker, called for those that a pipeline names; raises ``ConfigError`` where
something is not installed. ``inline``: a thread of this process, for tests and for code that is
tiny or leaves the interpreter. ``process``: a process of its own, which may crash, be killed, and
compute in Python, all alone. ``ray``: such a process on whichever machine of a Ray cluster has
room."""

IN_A_CLUSTER = frozenset({"ray"})
"""Those that find a place for each worker, by what it takes."""
