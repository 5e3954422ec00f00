"""Whether the Pythons that stages name can be workers. Each is started once.

This module must not know what a stage runs.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable

from duologue.core.errors import ConfigError
from duologue.engines.pipeline import Pipeline

_TIMEOUT_S = 60.0
_WORKER = "duologue.engines.worker"


def check_interpreters(pipelines: Iterable[Pipeline]) -> None:
    """Start the Python of each stage that names one, and let it load what a worker is.

    Raises:
        ConfigError: It cannot be started, or has no Duologue.
    """
    for pipeline in pipelines:
        for stage in pipeline.stages:
            if stage.interpreter is not None:
                where = f"stage {stage.name!r} of the pipeline {pipeline.name!r}"
                _check(where, stage.interpreter, stage.env)


def _check(where: str, interpreter: str, env: dict[str, str]) -> None:
    program = [interpreter, "-P", "-c", f"import {_WORKER}"]
    try:
        done = subprocess.run(
            program,
            env={**os.environ, **env},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as exc:
        raise ConfigError(
            f"{where}: the interpreter {interpreter} has not loaded a worker within "
            f"{_TIMEOUT_S:g} s"
        ) from exc
    except OSError as exc:
        raise ConfigError(
            f"{where}: the interpreter {interpreter} cannot be started: {exc.strerror}"
        ) from exc
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise ConfigError(
            f"{where}: the interpreter {interpreter} cannot be a worker: "
            f"{said[-1] if said else f'it ended with status {done.returncode}'}. "
            "Install duologue there, with what the runner needs"
        )
