"""``duologue demo --model moshi-tiny``: two calls at once with a model that hears while it speaks.

The model is made on the spot, of random numbers: what it says is noise, and its words are none.
What is shown is the machinery: audio and text come while the caller speaks, two calls know nothing
of each other, and an interruption stops what was being said.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
from rich.console import Console

from duologue.clients.client import DuplexClient
from duologue.clients.clip_device import ClipDevice
from duologue.clients.errors import CallError
from duologue.clients.playback import RATE_HZ, Taken
from duologue.commands.demo.conversation import DemoFailed
from duologue.commands.demo.questions import load_questions
from duologue.commands.demo.server import WorkerReady, running_server
from duologue.commands.talk.sound_files import write_speech
from duologue.core.audio import SAMPLE_BYTES
from duologue.core.clock import Clock
from duologue.core.errors import ConfigError, DuologueError
from duologue.core.installation import install_command
from duologue.protocol.response_events import AudioDelta, AudioTranscriptDelta, ResponseDone

MODEL = "moshi-tiny"
FOLDER = "moshi-tiny"
PIPELINE = "moshi_tiny"
LOG_NAME, WAV_NAME = "server.log", "moshi-tiny-{number}.wav"
CALLERS = (("hum", "You are a kind humming machine."), ("hiss", "You are a stern hissing machine."))
"""Voice and instructions of each call."""
VOICES_OF_CALLERS = tuple(voice for voice, _ in CALLERS)

HEARD_S = 1.5
"""So much must come back before the interruption, and again after it."""

PATIENCE_S = 60.0
SPEECH_S = 120.0
LEAST = 3


@dataclass(slots=True)
class Caller:
    """One call, as it went.

    Args:
        answers: Response ids in the order in which they sounded.
        after_cancel: Audio of an answer that came after the server had said that it is over.
        overlapped: Pieces of audio that came while the caller was speaking.
        went_on: Sound came while the other call was interrupted, and of the same answer.
    """

    device: ClipDevice
    said: bytearray = field(default_factory=bytearray)
    played: bytearray = field(default_factory=bytearray)
    heard: bytearray = field(default_factory=bytearray)
    text: str = ""
    answers: list[str] = field(default_factory=list)
    done: set[str] = field(default_factory=set)
    after_cancel: int = 0
    overlapped: int = 0
    went_on: bool = False

    @property
    def seconds(self) -> float:
        """How much sound came back."""
        return len(self.heard) / SAMPLE_BYTES / RATE_HZ

    def on_event(self, event: object) -> None:
        """Note what the server says."""
        match event:
            case AudioDelta(response_id=response_id, delta=pcm):
                self.heard += pcm
                self.overlapped += self.device.speaking
                self.after_cancel += response_id in self.done
                if response_id not in self.answers:
                    self.answers.append(response_id)
            case AudioTranscriptDelta(delta=text):
                self.text += text
            case ResponseDone(response=response):
                self.done.add(response.id)
            case _:
                pass


@dataclass(frozen=True, slots=True)
class Check:
    """What must hold, and whether it did."""

    what: str
    passed: bool


def pipeline(executor: str = "process") -> dict[str, object]:
    """Return the pipeline that runs the model, as it stands in a file."""
    files = {
        "weights": "model.safetensors",
        "codec": "tokenizer-e351c8d8-checkpoint125.safetensors",
        "tokenizer": "tokenizer_spm_32k_3.model",
        "voices": "voices",
    }
    stage = {
        "name": PIPELINE,
        "runner": "streaming_lm",
        "executor": executor,
        "work_class": "realtime",
        "max_jobs": 2 * len(CALLERS),
        "queue": 0,
        # On few cores, threads that wait for each other cost more than they bring.
        "env": {"OMP_NUM_THREADS": "1"} if executor == "process" else {},
        "settings": {
            "network": MODEL,
            "max_sessions": 2 * len(CALLERS),
            **{name: f"folder:{FOLDER}/{file}" for name, file in files.items()},
        },
    }
    return {"name": PIPELINE, "stages": [stage]}


def write_model(folder: Path) -> Path:
    """Write the model and the files that serve it; returns the configuration's path.

    Raises:
        ConfigError: The packages that it takes are not installed.
    """
    try:
        from duologue.engines.runners.streaming_lm.random_model import write_random_model
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"{MODEL} runs on torch, which is not here ({error.name} is missing). Get it with:"
            f" {install_command('duologue[torch]')}"
        ) from error
    write_random_model(folder / FOLDER)
    stages = folder / "pipeline.yaml"
    # JSON is YAML.
    stages.write_bytes(msgspec.json.encode(pipeline()))
    options = {"pipeline": PIPELINE, "voices": VOICES_OF_CALLERS}
    configuration = {
        "models": [{"name": MODEL, "plugin": "personaplex", "options": options}],
        "engine": {"pipelines": [], "pipeline_files": [str(stages)]},
        "artifacts": {"folders": [str(folder)]},
        "sessions": {"listening": {"vad": None, "end_of_turn": None, "asr": None}},
    }
    path = folder / "duologue.yaml"
    path.write_bytes(msgspec.json.encode(configuration))
    return path


async def demo(folder: Path, out: Path, console: Console, clock: Clock) -> int:
    """Hold both calls; returns 0 if all that must hold did.

    Args:
        folder: Takes the model.
        out: Takes the log and the recordings.

    Raises:
        DuologueError: The calls could not be held.
    """
    console.print(
        f"{MODEL} is a model of random numbers, made now: it makes noise, and its words are none."
        " What you see is how a call with such a model goes.",
        style="yellow",
    )
    configuration = await asyncio.to_thread(write_model, folder)

    def show(ready: WorkerReady) -> None:
        console.print(f"loaded {ready.worker} ({ready.took_s:.1f} s)", style="dim")

    arguments = ("--config", str(configuration))
    async with running_server(out / LOG_NAME, show, arguments=arguments) as url:
        callers = await hold_calls(url, clock)
    for number, caller in enumerate(callers, 1):
        path = out / WAV_NAME.format(number=number)
        await asyncio.to_thread(write_speech, path, [bytes(caller.said), bytes(caller.played)])
        console.print(f"\ncall {number}: {caller.seconds:.1f} s of sound came back, in {path}")
        console.print(f"  its words: {caller.text[:60]!a}", markup=False, style="dim")
    checks = judge(callers)
    console.print()
    for check in checks:
        console.print(f"{'ok  ' if check.passed else 'FAIL'} {check.what}", markup=False)
    return 0 if all(check.passed for check in checks) else 1


async def hold_calls(url: str, clock: Clock) -> list[Caller]:
    """Hold two calls side by side, each with a question of its own; interrupt the first.

    Raises:
        DuologueError: A call broke, or nothing comes back for a long time.
    """
    first, second = (_caller(clock, seed) for seed in range(len(CALLERS)))
    async with (
        _call(url, 0, first, clock) as call,
        _call(url, 1, second, clock) as other,
        asyncio.TaskGroup() as group,
    ):
        watchers = (
            group.create_task(_watch(call, first), name="events of the first call"),
            group.create_task(_watch(other, second), name="events of the second"),
        )
        failure = await _interrupted(call, first, second)
        for watcher in watchers:
            watcher.cancel()
    if failure is not None:
        raise failure
    return [first, second]


async def _interrupted(call: DuplexClient, first: Caller, second: Caller) -> DuologueError | None:
    """Return what went wrong: raised in a task group, it would come out wrapped."""
    for caller, question in zip((first, second), load_questions(LEAST), strict=False):
        for _ in range(int(SPEECH_S * RATE_HZ * SAMPLE_BYTES / len(question.pcm))):
            caller.device.say(question.pcm)
    try:
        async with asyncio.timeout(PATIENCE_S):
            await call.wait_until(lambda: min(first.seconds, second.seconds) >= HEARD_S)
            answers, heard_s = list(second.answers), second.seconds
            await call.interrupt()
            said = len(first.answers)
            await call.wait_until(lambda: len(first.answers) > said)
            again_s = first.seconds
            await call.wait_until(lambda: first.seconds >= again_s + HEARD_S)
    except TimeoutError:
        return DemoFailed(
            f"after {PATIENCE_S:.0f} s, {first.seconds:.1f} s and {second.seconds:.1f} s of sound"
            " had come back, and that is too little"
        )
    except DuologueError as error:
        return error
    second.went_on = second.seconds > heard_s and second.answers[: len(answers)] == answers
    return None


def judge(callers: Sequence[Caller]) -> list[Check]:
    """Say what must hold of the calls."""
    first, others = callers[0], callers[1:]
    return [
        Check("sound comes back while the caller speaks", all(c.overlapped for c in callers)),
        Check("words come with it", all(c.text for c in callers)),
        Check("the calls know nothing of each other", len({bytes(c.heard) for c in callers}) > 1),
        Check(
            "nothing of an answer comes after it was interrupted",
            bool(first.done) and not first.after_cancel,
        ),
        Check("the model speaks again after that", len(first.answers) > 1),
        Check("the other call goes on meanwhile", all(c.went_on for c in others)),
    ]


def _caller(clock: Clock, seed: int) -> Caller:
    def on_frame(said: bytes, taken: Taken) -> None:
        caller.said += said
        caller.played += taken.pcm

    caller = Caller(ClipDevice(on_frame=on_frame, clock=clock, seed=seed))
    return caller


def _call(url: str, number: int, caller: Caller, clock: Clock) -> DuplexClient:
    voice, instructions = CALLERS[number]
    return DuplexClient.connect(
        url,
        model=MODEL,
        device=caller.device,
        clock=clock,
        voice=voice,
        instructions=instructions,
    )


async def _watch(call: DuplexClient, caller: Caller) -> None:
    with suppress(CallError):
        async for event in call.events():
            caller.on_event(event)
