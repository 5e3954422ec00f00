"""The runner ``policy``: observations in, chunks of actions out.

A step of a job is one step of its flow, so that a cancel is heard between two of them. This module
must not know robots or who asks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np

from duologue.core.errors import ConfigError, EngineError
from duologue.engines.policy_payloads import ActionChunk, DecideActions
from duologue.engines.runners.apart import step_apart
from duologue.engines.runners.contract import Job, Step
from duologue.engines.runners.policy.flow import (
    Floats,
    FlowPolicy,
    PolicyConfig,
    Read,
    weight_shapes,
)
from duologue.engines.runners.policy.safetensors_file import read_weights
from duologue.engines.runners.registry import RunnerType

CONFIG_FILE = "config.json"
WEIGHTS_FILE = "model.safetensors"
_WARM_PROMPT = "warm up"


class PolicySettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of ``policy``.

    Args:
        folder: Has ``config.json`` and ``model.safetensors``.
        max_batch: Jobs that take a step, in turn, before the worker looks at what else there is.
    """

    folder: str
    max_batch: Annotated[int, msgspec.Meta(ge=1, le=1024)] = 8


@dataclass(slots=True)
class _Flow:
    read: Read
    actions: Floats
    steps: int
    done: int = 0


class PolicyRunner:
    """The model on the CPU, one step of each job's flow at a time."""

    def __init__(self, policy: FlowPolicy, max_batch: int) -> None:
        self.max_batch = max_batch
        self._policy = policy

    def warm_up(self) -> None:
        """Touch all weights once."""
        config = self._policy.config
        side = bytes(config.image_width * config.image_height * 3)
        state = bytes(4 * config.state_dim)
        job = Job("warm-up")
        job.inputs.append(DecideActions((side,) * config.cameras, state, _WARM_PROMPT, 1, 0))
        self.step([job])

    def open(self, job: Job) -> None:
        """Nothing is needed before the observation is read."""

    def ready(self, job: Job) -> bool:
        """There is an observation, or a flow that goes on."""
        return job.state is not None or bool(job.inputs)

    def step(self, jobs: Sequence[Job]) -> Sequence[Step]:
        """Take a step of each flow."""
        return step_apart(self._step, jobs)

    def close(self, job: Job) -> None:
        """Forget the flow."""
        job.state = None

    def _step(self, job: Job) -> Step:
        if job.cancelled:
            return Step(done=True)
        flow: _Flow = job.state or self._begun(job)
        job.state = flow
        time = 1 - flow.done / flow.steps
        velocity = self._policy.velocity(flow.read, flow.actions, time)
        flow.actions = flow.actions - velocity / np.float32(flow.steps)
        flow.done += 1
        if flow.done < flow.steps:
            return Step()
        if not np.isfinite(flow.actions).all():
            return Step(error=EngineError("the policy gave actions that are no numbers"))
        horizon, dim = flow.actions.shape
        return Step([ActionChunk(flow.actions.astype("<f4").tobytes(), horizon, dim)], done=True)

    def _begun(self, job: Job) -> _Flow:
        ask = job.inputs.popleft()
        if not isinstance(ask, DecideActions):
            raise EngineError(f"a policy cannot do anything with {type(ask).__name__}")
        config = self._policy.config
        picture = (config.image_height, config.image_width, 3)
        sizes = [len(each) for each in ask.images]
        if sizes != [int(np.prod(picture))] * config.cameras or len(ask.state) != (
            4 * config.state_dim
        ):
            raise EngineError(
                f"the checkpoint takes {config.cameras} pictures of {picture} and a state of "
                f"{config.state_dim}, and was given pictures of {sizes} bytes and a state of "
                f"{len(ask.state) // 4}: the pipeline's 'policy' must say what it takes"
            )
        if ask.steps < 1:
            raise EngineError(f"a flow of {ask.steps} steps gives nothing")
        pictures = np.frombuffer(b"".join(ask.images), np.uint8).reshape(-1, *picture)
        state = np.frombuffer(ask.state, "<f4").astype(np.float32)
        read = self._policy.read(pictures, state, ask.prompt.encode())
        return _Flow(read, self._policy.noise(ask.seed), ask.steps)


def load_policy(folder: Path) -> FlowPolicy:
    """Load a checkpoint.

    Raises:
        ConfigError: A file is missing or broken, or the two do not go together.
    """
    path = folder / CONFIG_FILE
    try:
        config = msgspec.json.decode(path.read_bytes(), type=PolicyConfig)
    except (OSError, msgspec.MsgspecError) as exc:
        raise ConfigError(f"{path}: {exc}") from exc
    if fault := config.fault():
        raise ConfigError(f"{path}: {fault}")
    return FlowPolicy(config, read_weights(folder / WEIGHTS_FILE, weight_shapes(config)))


def _build(settings: PolicySettings) -> PolicyRunner:
    return PolicyRunner(load_policy(Path(settings.folder)), settings.max_batch)


POLICY = RunnerType.plain(PolicySettings, _build, sleep_levels=(2,))
