"""Models of a call without weights, which do wrong what they are told to, once.

The recogniser reads beeps: each word of ``WORDS`` is a beep of its own pitch. The language model
repeats what it was told in a sentence, the voice sounds tones. Where "llm half" is said, the
language model stops half-way; "asr" and "tts" are the others. Where a function is named that the
language model may call, or it must call one, it calls it. So a test needs no luck to meet a
model in the midst of its work, and calls beside each other may each get what they ask for.

Imported by the worker processes; must not know the tests or their server.
"""

from __future__ import annotations

import itertools
import math
import re
import resource
import socket
import threading
from array import array
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, cast

import msgspec

from duologue.core.errors import EngineError
from duologue.engines.payloads import (
    AudioChunk,
    ChatRequest,
    DecodeSpeech,
    HeardDetails,
    HeardWord,
    Payload,
    SpeakText,
    TextDelta,
    TokenUsage,
    ToolCallDelta,
    Transcript,
)
from duologue.engines.runners.apart import step_apart
from duologue.engines.runners.contract import Job, Step
from duologue.engines.runners.registry import RunnerType
from duologue.engines.runners.scripted import ToneRunner, ToneSettings

FAULTS = ("wait", "half", "raise", "crash", "hang", "starve", "twice", "backwards", "short")
"""``wait`` and ``half`` say nothing more, before the first and after half of the outputs; other
jobs go on. The next five come at half of them, ``starve`` being a step that finds no memory; the
last three concern all of them."""

WORDS = ("hello", "again", "long", "asr", "llm", "tts", *FAULTS, "weather")

BEEP_RATE_HZ = 24_000
_BEEP_MS, _GAP_MS = 240, 40
_LOWEST_HZ, _STEP_HZ = 400, 100
_LEVEL, _LOUD = 8_000, 1_000
_LOOP_SAMPLES = BEEP_RATE_HZ // _STEP_HZ
_BLOCK_MS = 10

LONG = " and so on" * 40


def beeps(text: str) -> bytes:
    """Say words."""
    gap = bytes(BEEP_RATE_HZ * _GAP_MS // 1000 * 2)
    return b"".join(_beep(WORDS.index(word)) + gap for word in text.split())


def _beep(index: int) -> bytes:
    step = 2 * math.pi * (_LOWEST_HZ + _STEP_HZ * index) / BEEP_RATE_HZ
    loop = array("h", (round(_LEVEL * math.sin(step * n)) for n in range(_LOOP_SAMPLES)))
    return (loop * (BEEP_RATE_HZ * _BEEP_MS // 1000 // _LOOP_SAMPLES)).tobytes()


def heard(pcm: bytes, rate_hz: int) -> str:
    """Return the words that were said; those whose beep was cut to less than a half are missing."""
    return " ".join(word for word, _, _ in heard_words(pcm, rate_hz))


def heard_words(pcm: bytes, rate_hz: int) -> list[tuple[str, int, int]]:
    """As ``heard``, each word with the samples at which it begins and ends."""
    samples = array("h", pcm)
    size = rate_hz * _BLOCK_MS // 1000
    words: list[tuple[str, int, int]] = []
    blocks: list[array[int]] = []
    for start in range(0, len(samples) + size, size):
        block = samples[start : start + size]
        if block and max(block) > _LOUD:
            blocks.append(block)
            continue
        if len(blocks) * _BLOCK_MS > _BEEP_MS / 2:
            words.append((_word(blocks), start - len(blocks) * size, start))
        blocks = []
    return words


def _word(blocks: Sequence[array[int]]) -> str:
    inner = [sample for block in blocks[1:-1] for sample in block]
    signs = sum((a < 0) != (b < 0) for a, b in itertools.pairwise(inner))
    pitch_hz = signs / 2 / ((len(blocks) - 2) * _BLOCK_MS / 1000)
    nearest = round((pitch_hz - _LOWEST_HZ) / _STEP_HZ)
    return WORDS[min(max(nearest, 0), len(WORDS) - 1)]


class FaultySettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of all three.

    Args:
        stage: The word that means this one.
        desk: Unix socket that is asked, as "llm half", before anything is done wrong; it answers
            ``y`` or ``n``.
        absent: While there is such a file, the model cannot be loaded.
    """

    stage: str
    desk: str
    absent: str
    max_batch: int = 16


Stop = Literal["hold", "raise", "crash", "hang", "starve", "end"]


@dataclass(slots=True)
class Work:
    """How far a job has come.

    Args:
        script: What comes next: outputs, or the place where it goes wrong.
        held: Nothing comes any more.
    """

    script: deque[tuple[Payload, ...] | Stop] = field(default_factory=deque)
    held: bool = False
    pcm: bytearray = field(default_factory=bytearray)
    rate_hz: int = 0
    tone: Job = field(default_factory=lambda: Job("tone"))


class FaultyRunner:
    """Plays scripts; a subclass says what to do with an input."""

    def __init__(self, settings: FaultySettings) -> None:
        if Path(settings.absent).exists():
            raise EngineError(f"{settings.absent} tells the model to be absent")
        self.max_batch = settings.max_batch
        self._settings = settings
        self._order = re.compile(rf"\b{settings.stage} ({'|'.join(FAULTS)})\b")

    def warm_up(self) -> None:
        """Nothing gets faster."""

    def open(self, job: Job) -> None:
        """Begin."""
        job.state = Work()

    def ready(self, job: Job) -> bool:
        """Something is to be said or read, or everything was."""
        work = cast(Work, job.state)
        return not work.held and bool(job.inputs or work.script or job.input_ended)

    def step(self, jobs: Sequence[Job]) -> Sequence[Step]:
        """Do one thing of each job."""
        return step_apart(self._step_one, jobs)

    def close(self, job: Job) -> None:
        """Forget it."""
        job.state = None

    def _answers(self, work: Work, payload: Payload) -> tuple[str, list[tuple[Payload, ...]]]:
        """Return what orders may stand in, and what to say."""
        raise NotImplementedError

    def _step_one(self, job: Job) -> Step:
        work = cast(Work, job.state)
        if not work.script and job.inputs:
            text, outputs = self._answers(work, job.inputs.popleft())
            work.script.extend(self._with_fault(text, outputs))
        following = work.script.popleft() if work.script else ()
        match following:
            case "hold":
                work.held = True
                return Step()
            case "raise":
                return Step(error=EngineError("told to fail"))
            case "crash":
                raise RuntimeError("told to crash")
            case "hang":
                threading.Event().wait()
                return Step()
            case "starve":
                _find_no_memory()
                return Step()
            case "end":
                return Step(done=True)
            case _:
                return Step(following, done=job.input_ended and not job.inputs and not work.script)

    def _with_fault(
        self, text: str, outputs: list[tuple[Payload, ...]]
    ) -> Iterator[tuple[Payload, ...] | Stop]:
        # The last one: turns whose answers nobody heard stand before it in the same prompt.
        kinds = self._order.findall(text)
        kind = kinds[-1] if kinds and outputs and self._is_first_time(kinds[-1]) else ""
        half = len(outputs) // 2
        match kind:
            case "wait":
                yield "hold"
            case "half" | "raise" | "crash" | "hang" | "starve" | "short":
                yield from outputs[:half]
                stops: dict[str, Stop] = {"half": "hold", "short": "end"}
                yield stops.get(kind, cast(Stop, kind))
            case "twice":
                yield from (each for each in outputs for _ in range(2))
                return
            case "backwards":
                yield from reversed(outputs)
                return
        if kind not in ("half", "raise", "crash", "hang", "starve", "short"):
            yield from outputs

    def _is_first_time(self, kind: str) -> bool:
        with socket.socket(socket.AF_UNIX) as desk:
            desk.connect(self._settings.desk)
            desk.sendall(f"{self._settings.stage} {kind}".encode())
            return desk.recv(1) == b"y"


def _find_no_memory() -> None:
    """Ask the system for more than this process may have, and let it refuse.

    Raises:
        MemoryError: Always.
    """
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (16 << 20), limit[1]))
    try:
        _hoard = [bytearray(1 << 20) for _ in range(4096)]
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limit)
    raise AssertionError("there was no limit")


class Recogniser(FaultyRunner):
    """Reads beeps."""

    def _answers(self, work: Work, payload: Payload) -> tuple[str, list[tuple[Payload, ...]]]:
        match payload:
            case AudioChunk(pcm=pcm, rate_hz=rate_hz):
                work.pcm += pcm
                work.rate_hz = rate_hz
                return "", []
            case DecodeSpeech(kind=kind, end_sample=end_sample, options=options):
                words = heard_words(bytes(work.pcm), work.rate_hz or BEEP_RATE_HZ)
                text = " ".join(word for word, _, _ in words)
                order = text if kind == "final" else ""
                details = None
                if options is not None:
                    origin = end_sample - len(work.pcm) // 2
                    timed = tuple(
                        HeardWord(f" {word}", origin + start, origin + end, 0.5, (n,))
                        for n, (word, start, end) in enumerate(words)
                    )
                    details = HeardDetails(timed if options.words else (), -0.25, 0.125)
                return order, [(Transcript(text, kind, end_sample, details),)]
            case _:
                raise AssertionError(f"a recogniser was given {payload}")


class Writer(FaultyRunner):
    """Repeats in a sentence what it was told; calls a tool whose name ends in one of the words."""

    def _answers(self, work: Work, payload: Payload) -> tuple[str, list[tuple[Payload, ...]]]:
        assert isinstance(payload, ChatRequest)
        if not payload.max_tokens:
            return "", []
        told = payload.messages[-1].content
        name = _function(payload, told)
        if name:
            pieces = (ToolCallDelta(0, "c", name, '{"what":'), ToolCallDelta(0, "", "", '"x"}'))
            return told, [*((piece,) for piece in pieces), (TokenUsage(1, 1),)]
        words = f"Well, you said {told}{LONG if 'long' in told else ''}.".split(" ")
        usage = TokenUsage(input_tokens=1, output_tokens=len(words))
        deltas = [TextDelta(word if not n else f" {word}") for n, word in enumerate(words)]
        return told, [*((delta,) for delta in deltas), (usage,)]


def _function(request: ChatRequest, told: str) -> str:
    tools = request.tools
    allowed = [each.name for each in tools.functions if tools.allows(each.name)]
    if request.messages[-1].role == "tool" or not allowed:
        return ""
    named = [name for name in allowed if name.replace("_", " ") in told]
    return (named or (allowed if tools.choice == "required" else [""]))[0]


class Voice(FaultyRunner):
    """Sounds tones."""

    def __init__(self, settings: FaultySettings) -> None:
        super().__init__(settings)
        self._tone = ToneRunner(ToneSettings(ms_per_character=10, chunk_ms=(50,)))

    def open(self, job: Job) -> None:
        super().open(job)
        self._tone.open(cast(Work, job.state).tone)

    def _answers(self, work: Work, payload: Payload) -> tuple[str, list[tuple[Payload, ...]]]:
        assert isinstance(payload, SpeakText)
        work.tone.inputs.append(payload)
        outputs = []
        while self._tone.ready(work.tone):
            (step,) = self._tone.step((work.tone,))
            outputs.append(tuple(step.outputs))
        return payload.text, outputs


# A job that is held has no inputs left and is not done: only the runner knows.
RECOGNISER = RunnerType(FaultySettings, lambda settings, _: Recogniser(settings), wakes_itself=True)
WRITER = RunnerType(FaultySettings, lambda settings, _: Writer(settings), wakes_itself=True)
VOICE = RunnerType(FaultySettings, lambda settings, _: Voice(settings), wakes_itself=True)
