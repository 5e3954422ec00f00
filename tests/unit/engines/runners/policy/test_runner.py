from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest

from duologue.core.errors import ConfigError, EngineError
from duologue.engines.payloads import Payload, TextDelta
from duologue.engines.policy_payloads import ActionChunk, DecideActions
from duologue.engines.runners.contract import Job
from duologue.engines.runners.policy.runner import POLICY, PolicyRunner, PolicySettings, load_policy
from tests.fakes.tiny_policy import CONFIG, write_checkpoint

PICTURE = bytes(range(256)) * 5  # longer than one
SIDE = CONFIG.image_width * CONFIG.image_height * 3
ASK = DecideActions(
    (PICTURE[:SIDE], PICTURE[1 : SIDE + 1]), np.ones(8, "<f4").tobytes(), "fold", 4, 7
)


@pytest.fixture
def runner(tmp_path: Path) -> PolicyRunner:
    write_checkpoint(tmp_path)
    made = POLICY.build(PolicySettings(folder=str(tmp_path)), lambda: None)
    assert isinstance(made, PolicyRunner)
    return made


def opened(runner: PolicyRunner, *asks: Payload) -> list[Job]:
    jobs = [Job(f"job {n}", input_ended=True) for n in range(len(asks))]
    for job, ask in zip(jobs, asks, strict=True):
        job.inputs.append(ask)
        runner.open(job)
        assert runner.ready(job)
    return jobs


def chunks(runner: PolicyRunner, jobs: list[Job]) -> list[ActionChunk]:
    for _ in range(ASK.steps - 1):
        assert not any(step.outputs or step.done or step.error for step in runner.step(jobs))
        assert all(runner.ready(job) for job in jobs)
    steps = runner.step(jobs)
    assert all(step.done for step in steps)
    for job in jobs:
        runner.close(job)
        assert not runner.ready(job)
    return [each for step in steps for each in step.outputs if isinstance(each, ActionChunk)]


def test_a_chunk_comes_after_the_steps_of_its_flow(runner: PolicyRunner) -> None:
    runner.warm_up()
    (alone,) = chunks(runner, opened(runner, ASK))
    assert (alone.horizon, alone.dim, len(alone.values)) == (5, 7, 140)
    other = msgspec.structs.replace(ASK, seed=8)
    together = chunks(runner, opened(runner, other, ASK))
    assert together[1] == alone, "others change nothing"
    assert together[0] != alone


@pytest.mark.parametrize(
    "ask",
    [
        TextDelta("hello"),
        msgspec.structs.replace(ASK, images=ASK.images[:1]),
        msgspec.structs.replace(ASK, state=b"1234"),
        msgspec.structs.replace(ASK, steps=0),
    ],
)
def test_what_the_checkpoint_does_not_take_fails_alone(runner: PolicyRunner, ask: Payload) -> None:
    wrong, right = runner.step(opened(runner, ask, ASK))
    assert isinstance(wrong.error, EngineError)
    assert right.error is None


def test_numbers_that_are_none_are_no_actions(runner: PolicyRunner) -> None:
    state = np.full(8, np.inf, "<f4").tobytes()
    jobs = opened(runner, msgspec.structs.replace(ASK, state=state, steps=1))
    with np.errstate(all="ignore"):
        (step,) = runner.step(jobs)
    assert "no numbers" in str(step.error)


def test_a_cancelled_job_takes_no_further_step(runner: PolicyRunner) -> None:
    (job,) = opened(runner, ASK)
    runner.step([job])
    job.cancelled = True
    (step,) = runner.step([job])
    assert step.done
    assert not step.outputs


def test_a_checkpoint_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"config\.json"):
        load_policy(tmp_path)
    write_checkpoint(tmp_path)
    path = tmp_path / "config.json"
    path.write_bytes(msgspec.json.encode(msgspec.structs.replace(CONFIG, patch=7)))
    with pytest.raises(ConfigError, match="patches of 7"):
        load_policy(tmp_path)
    path.write_bytes(msgspec.json.encode(msgspec.structs.replace(CONFIG, horizon=9, state_dim=9)))
    with pytest.raises(ConfigError, match=r"state_proj\.weight has the shape \[16, 8\]"):
        load_policy(tmp_path)
