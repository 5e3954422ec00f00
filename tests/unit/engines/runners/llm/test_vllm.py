"""vLLM itself, with a tiny model on the CPU: what every runner does, and what only it can."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from duologue.core.clock import SystemClock
from duologue.core.errors import ConfigError
from duologue.engines.payloads import TextDelta
from duologue.engines.runners.llm.async_answers import WriterBroken
from duologue.engines.runners.llm.vllm import VLLM, VllmSettings, build
from duologue.engines.runners.registry import RunnerRegistry
from duologue.engines.worker_model import WorkerModel
from tests.fakes.jobs import Jobs
from tests.fakes.tiny_llama import tiny_llama, tiny_lora
from tests.unit.engines.runners.llm.chat_contract import (
    CONTEXT_TOKENS,
    STORY,
    ChatContract,
    ask,
    text_of,
)

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings("ignore"),  # vLLM and what it loads warn about each other
]


def loaded(folder: Path) -> Jobs:
    settings = {
        "model_path": str(tiny_llama(folder / "model")),
        "context_tokens": CONTEXT_TOKENS,
        "max_batch": 16,
        "dtype": "float32",
        "cpu_cache_gb": 1,
        "eager": True,
        "adapters": {"other": str(tiny_lora(folder / "lora"))},
    }
    jobs = Jobs(patience_s=120)
    built = RunnerRegistry({"vllm": "duologue.engines.runners.llm.vllm:VLLM"})
    jobs.runner = built.build("vllm", settings, jobs.wake).runner
    jobs.runner.warm_up()
    return jobs


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jobs]:
    yield loaded(tmp_path_factory.mktemp("vllm"))
    for child in psutil.Process().children(recursive=True):
        child.send_signal(signal.SIGTERM)


class TestVllm(ChatContract):
    def test_weights_laid_over_the_model_change_what_it_says(self, jobs: Jobs) -> None:
        own = text_of(jobs.outputs_of([ask(STORY, max_tokens=24)]))
        other = text_of(jobs.outputs_of([ask(STORY, max_tokens=24, adapter="other")]))
        again = text_of(jobs.outputs_of([ask(STORY, max_tokens=24)]))
        assert own == again != other

    def test_text_ends_before_a_word_that_stops_it(self, jobs: Jobs) -> None:
        whole = text_of(jobs.outputs_of([ask(max_tokens=40)]))
        stop = whole[8:11]
        outputs = jobs.outputs_of([ask(max_tokens=40, stop=(stop,))])
        assert text_of(outputs) == whole[: whole.index(stop)]

    def test_an_engine_that_dies_ends_the_worker(self, jobs: Jobs) -> None:
        assert jobs.runner is not None
        job = jobs.open(ask(STORY, max_tokens=800))
        jobs.until(job, TextDelta)
        for child in psutil.Process().children(recursive=True):
            os.kill(child.pid, signal.SIGKILL)
        with pytest.raises(WriterBroken):
            jobs.finish(job)


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nosuch"):
        build(VllmSettings(model_path=str(tmp_path / "nosuch")), lambda: None)


def test_it_is_known_by_name() -> None:
    assert RunnerRegistry.installed().load("vllm") is VLLM


def test_asleep_its_processes_are_gone_and_it_wakes_as_it_was(tmp_path: Path) -> None:
    runners = RunnerRegistry({"vllm": "duologue.engines.runners.llm.vllm:VLLM"})
    settings = {
        "model_path": str(tiny_llama(tmp_path)),
        "context_tokens": CONTEXT_TOKENS,
        "dtype": "float32",
        "cpu_cache_gb": 1,
        "eager": True,
    }
    before = set(psutil.Process().children(recursive=True))
    model = WorkerModel(
        lambda wake, _announce: runners.build("vllm", settings, wake),
        lambda: None,
        lambda _phase: None,
        SystemClock(),
    )
    model.load()
    refused = model.sleep(1)
    assert (refused.level, refused.code) == (0, "sleep_unsupported")
    rested = model.sleep(2)
    assert (rested.level, rested.code) == (2, "")
    psutil.wait_procs(set(psutil.Process().children(recursive=True)) - before, timeout=60)
    assert set(psutil.Process().children(recursive=True)) <= before
    assert rested.freed_bytes > 100 * 2**20
    assert model.wake().code == ""
    assert model.sleep(2).code == ""
