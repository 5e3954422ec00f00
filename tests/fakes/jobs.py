"""Runs the jobs of a runner that wakes itself, as a worker would."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from itertools import count

from duologue.core.errors import EngineError
from duologue.engines.payloads import Payload
from duologue.engines.runners.contract import Job, Runner
from tests.patience import PATIENCE_S


class Jobs:
    """A worker's loop, one step at a time.

    ``wake`` goes to the runner; set ``runner`` before anything else.

    Args:
        patience_s: A runner that says nothing for so long hangs.
    """

    def __init__(self, patience_s: float = PATIENCE_S) -> None:
        self._patience_s = patience_s
        self.runner: Runner | None = None
        self._woken = threading.Event()
        self._ids = count()

    def wake(self) -> None:
        self._woken.set()

    def open(self, *inputs: Payload, ended: bool = True) -> Job:
        assert self.runner is not None
        job = Job(id=f"job-{next(self._ids)}")
        job.inputs.extend(inputs)
        job.input_ended = ended
        self.runner.open(job)
        return job

    def next(self, job: Job) -> tuple[list[Payload], bool, EngineError | None]:
        """Wait until the job can be stepped, and step it."""
        assert self.runner is not None
        while not self.runner.ready(job):
            assert self._woken.wait(self._patience_s), "the runner did not wake anybody"
            self._woken.clear()
        (step,) = self.runner.step([job])
        return list(step.outputs), step.done, step.error

    def until(self, job: Job, kind: type[Payload]) -> list[Payload]:
        """Step a job until it has given an output of a kind."""
        outputs: list[Payload] = []
        while not any(isinstance(output, kind) for output in outputs):
            new, done, error = self.next(job)
            outputs += new
            assert error is None, error
            assert not done or any(isinstance(output, kind) for output in outputs)
        return outputs

    def finish(self, job: Job) -> tuple[list[Payload], EngineError | None]:
        """Step a job to its end and close it."""
        assert self.runner is not None
        outputs: list[Payload] = []
        done, error = False, None
        while not done and error is None:
            new, done, error = self.next(job)
            outputs += new
        self.runner.close(job)
        return outputs, error

    def run(self, *inputs: Payload) -> tuple[list[Payload], EngineError | None]:
        """Run one job from beginning to end."""
        return self.finish(self.open(*inputs))

    def outputs_of(self, inputs: Iterable[Payload]) -> list[Payload]:
        """Run one job that must succeed."""
        outputs, error = self.run(*inputs)
        assert error is None, error
        return outputs
