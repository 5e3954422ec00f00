"""A worker from birth to death, in a thread or in a process of its own.

This module must not know where it runs, nor who is told.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path

from duologue.core.clock import SystemClock
from duologue.core.errors import ConfigError, DuologueError
from duologue.engines.arbiter.turns import make_turns
from duologue.engines.messages import Died, Report, WorkerSpec
from duologue.engines.runners.registry import Built, RunnerRegistry, Wake
from duologue.engines.schedulers import SCHEDULERS
from duologue.engines.stage_worker import StageWorker
from duologue.engines.worker_model import IMPORT, LOAD, Announce

WORKER_CRASHED = "worker_crashed"


def make_worker(spec: WorkerSpec, post: Callable[[Report], None]) -> StageWorker:
    """Make the worker that ``spec`` describes; its runner is found and loaded when it runs."""

    def load(wake: Wake, announce: Announce) -> Built:
        runners = RunnerRegistry.installed()
        announce(IMPORT)
        runner_type = runners.load(spec.runner)
        announce(LOAD)
        return runners.make(spec.runner, runner_type, spec.settings, wake)

    return StageWorker(
        load=load,
        schedule=SCHEDULERS[spec.scheduler],
        post=post,
        clock=SystemClock(),
        asleep=spec.asleep,
        share=lambda runner: make_turns(spec, runner),
    )


def serve(worker: StageWorker, post: Callable[[Report], None]) -> None:
    """Run a worker to its end; if it dies, its last words say of what."""
    try:
        worker.run()
    except ConfigError as exc:
        post(Report([Died(exc.code, exc.message)]))  # the user's typing error: where is no matter
    except DuologueError as exc:
        traceback.print_exc()
        post(Report([Died(exc.code, exc.message)]))
    # One of the three agreed places for a broad except: a bug in a runner ends this worker and
    # nothing else, and the pool starts another.
    except Exception as exc:  # noqa: BLE001
        traceback.print_exc()
        frame = traceback.extract_tb(exc.__traceback__)[-1]
        where = f"{Path(frame.filename).name}:{frame.lineno}"
        post(Report([Died(WORKER_CRASHED, f"{type(exc).__name__} at {where}")]))
