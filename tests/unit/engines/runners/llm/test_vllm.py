"""vLLM itself, with a tiny model on the CPU: what every runner does, and what only it can."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import psutil
import pytest
from transformers import Idefics3ForConditionalGeneration, Idefics3Processor

from duologue.codecs.picture_urls import url_of
from duologue.codecs.pictures import Pixels, encode
from duologue.core.clock import SystemClock
from duologue.core.errors import ConfigError
from duologue.engines.payloads import ChatMessage, ChatRequest, TextDelta, TokenUsage
from duologue.engines.runners.llm.async_answers import WriterBroken
from duologue.engines.runners.llm.chat_chunk import REQUEST_REFUSED
from duologue.engines.runners.llm.vllm import VLLM, VllmSettings, build
from duologue.engines.runners.registry import RunnerRegistry
from duologue.engines.worker_model import WorkerModel
from tests.fakes.jobs import Jobs
from tests.fakes.tiny_llama import tiny_llama, tiny_lora
from tests.fakes.tiny_seeing import FRAME_TOKENS, PICTURE_TOKENS, tiny_seeing
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


RUNNERS = RunnerRegistry({"vllm": "duologue.engines.runners.llm.vllm:VLLM"})


def settings_of(model: Path, **more: object) -> dict[str, object]:
    common = {
        "context_tokens": CONTEXT_TOKENS,
        "dtype": "float32",
        "cpu_cache_gb": 1,
        "eager": True,
    }
    return {"model_path": str(model), **common, **more}


@contextmanager
def loaded(settings: dict[str, object]) -> Iterator[Jobs]:
    before = children()
    jobs = Jobs(patience_s=120)
    jobs.runner = RUNNERS.build("vllm", settings, jobs.wake).runner
    jobs.runner.warm_up()
    yield jobs
    for child in children() - before:
        child.send_signal(signal.SIGTERM)


def children() -> set[psutil.Process]:
    """All processes of vLLM; what Python keeps beside them stays for whoever is next."""
    found = psutil.Process().children(recursive=True)
    return {each for each in found if "resource_tracker" not in " ".join(command_line(each))}


def command_line(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.NoSuchProcess:
        return []


@pytest.fixture(scope="class")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jobs]:
    folder = tmp_path_factory.mktemp("vllm")
    adapters = {"other": str(tiny_lora(folder / "lora"))}
    settings = settings_of(tiny_llama(folder / "model"), max_batch=16, adapters=adapters)
    with loaded(settings) as jobs:
        yield jobs


@pytest.fixture(scope="class")
def seeing_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_seeing(tmp_path_factory.mktemp("seeing"))


@pytest.fixture(scope="class")
def seeing(seeing_model: Path) -> Iterator[Jobs]:
    with loaded(settings_of(seeing_model, pictures=2, picture_pixels=4096)) as jobs:
        yield jobs


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
        for child in children():
            os.kill(child.pid, signal.SIGKILL)
        with pytest.raises(WriterBroken):
            jobs.finish(job)


def look(*pictures: Pixels) -> ChatRequest:
    """Ask about pictures."""
    urls = tuple(url_of(encode(each, "png")) for each in pictures)
    return ChatRequest((ChatMessage("user", "What is it?", images=urls),), max_tokens=16)


def colours(seed: int, height: int = 24, width: int = 40) -> Pixels:
    """A picture that is another one upside down, turned, or with its colours exchanged."""
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


def by_transformers(folder: Path, *pictures: Pixels) -> str:
    """What the library that the model was made with answers."""
    model = Idefics3ForConditionalGeneration.from_pretrained(folder).eval()
    processor = Idefics3Processor.from_pretrained(folder)
    content = [{"type": "text", "text": "What is it?"}, *[{"type": "image"}] * len(pictures)]
    prompt = processor.tokenizer.apply_chat_template(
        [{"role": "user", "content": content}], add_generation_prompt=True, tokenize=False
    )
    inputs = processor(images=[list(pictures)], text=[prompt], return_tensors="pt")
    tokens = model.generate(**inputs, max_new_tokens=16, do_sample=False)[0]
    answer: str = processor.tokenizer.decode(tokens[inputs["input_ids"].shape[1] :])
    return answer


class TestVllmThatSees:
    def test_it_sees_what_the_library_sees(self, seeing: Jobs, seeing_model: Path) -> None:
        first, second = colours(1), colours(2, height=50, width=30)
        for pictures in ((first,), (second,), (first, second), (second, first)):
            outputs = seeing.outputs_of([look(*pictures)])
            assert text_of(outputs) == by_transformers(seeing_model, *pictures)

    def test_what_it_remembers_of_one_picture_is_not_used_for_another(self, seeing: Jobs) -> None:
        one, other = colours(3), colours(4)
        answers = [text_of(seeing.outputs_of([look(each)])) for each in (one, other, one)]
        assert answers[0] == answers[2] != answers[1]

    def test_pictures_are_tokens_of_the_prompt(self, seeing: Jobs) -> None:
        none, one, two = (seeing.outputs_of([look(*[colours(5)] * n)])[-1] for n in range(3))
        assert isinstance(none, TokenUsage)
        assert isinstance(one, TokenUsage)
        assert isinstance(two, TokenUsage)
        each = PICTURE_TOKENS + FRAME_TOKENS
        assert one.input_tokens - none.input_tokens == each
        assert two.input_tokens - one.input_tokens == each

    def test_too_many_and_too_large_ones_are_refused_and_others_go_on(self, seeing: Jobs) -> None:
        for request in (look(*[colours(6)] * 3), look(colours(7, height=65, width=64))):
            _, error = seeing.run(request)
            assert error is not None
            assert error.code == REQUEST_REFUSED
        assert text_of(seeing.outputs_of([look(colours(6))]))


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nosuch"):
        build(VllmSettings(model_path=str(tmp_path / "nosuch")), lambda: None)


def test_it_is_known_by_name() -> None:
    assert RunnerRegistry.installed().load("vllm") is VLLM


def test_asleep_its_processes_are_gone_and_it_wakes_as_it_was(tmp_path: Path) -> None:
    settings = settings_of(tiny_llama(tmp_path))
    before = children()
    model = WorkerModel(
        lambda wake, _announce: RUNNERS.build("vllm", settings, wake),
        lambda: None,
        lambda _phase: None,
        SystemClock(),
    )
    model.load()
    refused = model.sleep(1)
    assert (refused.level, refused.code) == (0, "sleep_unsupported")
    rested = model.sleep(2)
    assert (rested.level, rested.code) == (2, "")
    psutil.wait_procs(children() - before, timeout=60)
    assert children() <= before
    assert rested.freed_bytes > 100 * 2**20
    assert model.wake().code == ""
    assert model.sleep(2).code == ""
