"""Jobs on one side, the beat on the other, in real time with a tiny network."""

from __future__ import annotations

import gc
import sys
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest

from duologue.core.errors import EngineError
from duologue.engines.models.moshi_lm.random_checkpoint import save_random_voice, train_vocabulary
from duologue.engines.models.moshi_lm.tokenizer import TextTokenizer
from duologue.engines.payloads import (
    AudioChunk,
    LockstepFrame,
    LockstepFreeze,
    LockstepNews,
    LockstepRewind,
    LockstepStart,
    LockstepTaste,
    TextDelta,
)
from duologue.engines.runners.contract import Capturing, CountsFrames, Job, Sleeper, Step
from duologue.engines.runners.streaming_lm.beginnings import Beginnings
from duologue.engines.runners.streaming_lm.runner import MAX_WAITING_BYTES, StreamingLm
from duologue.engines.runners.streaming_lm.settings import StreamingLmSettings
from duologue.engines.runners.streaming_lm.switch_interval import SWITCH_INTERVAL_S
from tests.patience import PATIENCE_S
from tests.unit.engines.runners.streaming_lm.tiny_network import CONFIG, SAMPLES, engine, network

pytestmark = pytest.mark.torch

SETTINGS = StreamingLmSettings(network="moshi-tiny", weights="", codec="", tokenizer="")
SENTENCES = [f"the quick brown fox {n} jumps over lazy dogs" for n in range(40)]


class Bench:
    """A worker's part: steps when it is woken."""

    def __init__(self, runner: StreamingLm, woken: threading.Event) -> None:
        self.runner = runner
        self.woken = woken
        self.jobs: list[Job] = []
        self.news: dict[str, LockstepNews] = {}

    def open(self, name: str, start: LockstepStart) -> Job:
        job = Job(name)
        job.inputs.append(start)
        self.runner.open(job)
        self.jobs.append(job)
        return job

    def step(self) -> list[Step]:
        ready = [job for job in self.jobs if self.runner.ready(job)]
        return list(self.runner.step(ready)) if ready else []

    def frames(self, count: int) -> dict[str, list[LockstepFrame]]:
        """Step until each job has given so many frames."""
        made: dict[str, list[LockstepFrame]] = {job.id: [] for job in self.jobs}
        while any(len(frames) < count for frames in made.values()):
            ready = [job for job in self.jobs if self.runner.ready(job)]
            for job, step in zip(ready, self.runner.step(ready) if ready else [], strict=True):
                assert step.error is None
                for output in step.outputs:
                    if isinstance(output, LockstepNews):
                        self.news[job.id] = output
                        continue
                    assert isinstance(output, LockstepFrame)
                    made[job.id].append(output)
            assert self.woken.wait(PATIENCE_S)
            self.woken.clear()
        return made

    def close(self) -> None:
        while self.jobs:
            self.runner.close(self.jobs.pop())


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    vocabulary = tmp_path / "text.model"
    train_vocabulary(vocabulary, CONFIG, SENTENCES)
    voices = tmp_path / "voices"
    voices.mkdir()
    save_random_voice(voices / "low.pt", CONFIG, frames=3, seed=1)
    woken = threading.Event()
    tokenizer = TextTokenizer(vocabulary, CONFIG)
    weights = network().weights.embeddings
    beginnings = Beginnings(CONFIG, tokenizer, voices, "low", weights.device, weights.dtype)
    runner = StreamingLm(engine(), beginnings, tokenizer, SETTINGS, woken.set)
    runner.warm_up()
    made = Bench(runner, woken)
    yield made
    made.close()
    for thread in threading.enumerate():
        if thread.name == "ticks":
            thread.join(5)


def test_streams_are_heard_and_speak_at_every_tick(bench: Bench) -> None:
    bench.open("a", LockstepStart(seed=1))
    bench.open("b", LockstepStart(seed=2)).inputs.append(AudioChunk(b"\1\0" * SAMPLES, 600))
    made = bench.frames(3)
    for frames in made.values():
        assert [frame.number for frame in frames[:3]] == [0, 1, 2]
        assert all(len(frame.pcm) == 2 * SAMPLES for frame in frames)
        assert all(len(frame.codes) == len(frame.heard) == 8 for frame in frames)
    assert [frame.token for frame in made["a"]] != [frame.token for frame in made["b"]]


def test_the_interpreter_takes_turns_quickly_while_the_loop_lives(bench: Bench) -> None:
    before = sys.getswitchinterval()
    bench.open("a", LockstepStart(seed=1))
    bench.frames(1)
    assert sys.getswitchinterval() == pytest.approx(SWITCH_INTERVAL_S)
    bench.close()
    assert sys.getswitchinterval() == pytest.approx(before)


def test_rewinding_and_freezing_reach_the_loop(bench: Bench) -> None:
    job = bench.open("a", LockstepStart(seed=1))
    bench.frames(3)
    job.inputs.append(LockstepRewind(1))
    job.inputs.append(LockstepFreeze(False))
    # Frames from before the rewind may still be on their way.
    while not any(frame.rewinds for frame in bench.frames(1)["a"]):
        pass


def test_what_the_loop_has_not_taken_is_bounded_and_the_rest_stays_with_the_job(
    bench: Bench,
) -> None:
    job = bench.open("a", LockstepStart(seed=1))
    chunks = [AudioChunk(b"\0\0" * 2048, 600) for _ in range(100)]
    job.inputs.extend(chunks)
    bench.step()
    sent = 101 - len(job.inputs)
    weight = chunks[0].size_bytes()
    assert MAX_WAITING_BYTES <= sent * weight < MAX_WAITING_BYTES + 2 * weight
    job.input_ended = True
    while job.inputs:
        assert bench.woken.wait(PATIENCE_S)
        bench.woken.clear()
        steps = bench.step()
        assert not steps or steps[0].done == (not job.inputs)


def test_a_stream_goes_on_elsewhere_with_its_log(bench: Bench) -> None:
    bench.open("a", LockstepStart(seed=1))
    made = bench.frames(4)["a"][:4]
    numbers = [n for frame in made for n in (frame.token, *frame.codes, *frame.heard)]
    log = b"".join(n.to_bytes(2, "little") for n in numbers)
    bench.open("b", LockstepStart(seed=1, log=log))
    assert bench.frames(1)["b"][0].number == 4


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ([AudioChunk(b"", 600)], "begins with LockstepStart"),
        ([LockstepStart(voice="high")], "no voice 'high'; there are low"),
        ([LockstepStart(instructions="fox " * 40)], "shorten the instructions"),
        ([LockstepStart(log=b"\1\0\1\0")], "no whole number of frames"),
        ([LockstepStart(), AudioChunk(b"\0\0", 16_000)], "whole samples at 600 Hz"),
        ([LockstepStart(), AudioChunk(b"\0", 600)], "whole samples at 600 Hz"),
        ([LockstepStart(), TextDelta("a")], "cannot take TextDelta"),
        ([LockstepStart(), LockstepStart()], "cannot take LockstepStart"),
    ],
)
def test_what_it_cannot_take_fails_that_job_alone(
    bench: Bench, inputs: list[LockstepStart | AudioChunk], message: str
) -> None:
    bench.open("good", LockstepStart(seed=1))
    bad = Job("bad")
    bad.inputs.extend(inputs)
    bench.runner.open(bad)
    (step,) = bench.runner.step([bad])
    assert isinstance(step.error, EngineError)
    assert message in step.error.message
    bench.runner.close(bad)
    assert bench.frames(1)["good"]


def test_a_job_is_done_when_its_input_ends(bench: Bench) -> None:
    job = bench.open("a", LockstepStart(seed=1))
    bench.frames(1)
    job.input_ended = True
    assert bench.runner.ready(job)
    assert bench.runner.step([job])[0].done


def test_nobody_is_left_behind_when_all_have_gone(bench: Bench) -> None:
    for name in ("a", "b", "c"):
        bench.open(name, LockstepStart(seed=1))
        bench.frames(1)
        bench.close()


def another(bench: Bench) -> Bench:
    """One that no fixture holds."""
    woken = threading.Event()
    of = bench.runner
    runner = StreamingLm(engine(), of._beginnings, of._tokenizer, SETTINGS, woken.set)
    return Bench(runner, woken)


def test_it_can_be_let_go_of_when_its_streams_have_ended(bench: Bench) -> None:
    made = another(bench)
    made.runner.warm_up()
    made.open("a", LockstepStart(seed=1))
    made.frames(1)
    made.close()
    assert isinstance(made.runner, Sleeper)
    made.runner.sleep(2)
    left = weakref.ref(made.runner)
    del made
    gc.collect()
    assert left() is None


def test_its_steps_are_made_once_before_they_are_measured(bench: Bench) -> None:
    made = another(bench).runner
    assert isinstance(made, Capturing)
    made.capture()
    steps = dict(made._engine._frames)
    made.warm_up()
    assert made._engine._frames == steps


def test_it_says_how_many_it_holds_and_what_became_of_every_frame(bench: Bench) -> None:
    assert isinstance(bench.runner, CountsFrames)
    assert 1 <= bench.runner.holds <= bench.runner.max_batch
    bench.open("a", LockstepStart(seed=1))
    while "a" not in bench.news:
        bench.frames(1)
    told = bench.news["a"]
    assert told.counts.frames > 0
    assert told.sees_frames == 0
    bench.close()
    counted = bench.runner.counted()
    assert counted.frames >= told.counts.frames
    assert counted.silence_samples == counted.frames * SAMPLES


def test_a_stream_may_become_more_or_less_daring(bench: Bench) -> None:
    job = bench.open("a", LockstepStart(seed=1, temperature=0.5))
    bench.frames(1)
    job.inputs.append(LockstepTaste(0.0))
    assert bench.runner.ready(job)
    assert len(bench.frames(2)["a"]) >= 2
    assert not job.inputs
