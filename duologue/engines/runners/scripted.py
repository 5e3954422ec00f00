"""Runners that follow a script: the same input gives the same output, step by step.

``script`` turns text into words as a language model would, ``tone`` turns text into audible tones
with marks as a synthesiser would. Delays are counted in steps, and faults come where they are
asked for, so that tests need no clock and no luck. This module must not know who tests with it.
"""

from __future__ import annotations

import math
import sys
import threading
from array import array
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Literal, cast

import msgspec

from duologue.core.audio import SAMPLE_BYTES, ms_to_samples
from duologue.core.errors import EngineError
from duologue.engines.payloads import (
    AudioChunk,
    ChatRequest,
    Payload,
    SpeakText,
    SpeechMark,
    TextDelta,
    TokenUsage,
    ToolCallDelta,
    Transcript,
)
from duologue.engines.runners.apart import step_apart
from duologue.engines.runners.contract import Job, Step
from duologue.engines.runners.registry import RunnerType

TONE_RATE_HZ = 24_000
_TONE_LEVEL = 8_000
_LOWEST_TONE_HZ = 200
_TONES = 40
_TONE_STEP_HZ = 20
_LOOP_SAMPLES = TONE_RATE_HZ // _TONE_STEP_HZ
"""50 ms: whole periods of every tone fit in, so it can be repeated without a click."""


class Fault(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Something that goes wrong at one chunk of a job.

    Args:
        kind: ``raise`` fails the job. ``crash`` kills the worker with a foreign exception.
            ``hang`` never returns from the step. ``late`` holds the chunk back for ``steps``
            steps. ``twice`` gives the chunk twice. ``short`` ends the job before the chunk.
        at_chunk: Counted from 0 over the life of the job.
        when_text: Only in jobs whose input contains this.
    """

    kind: Literal["raise", "crash", "hang", "late", "twice", "short"]
    at_chunk: int = 0
    when_text: str = ""
    steps: int = 1


class ScriptCall(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A function call.

    Args:
        arguments: JSON text, given in two pieces.
    """

    name: str
    arguments: str = "{}"


class ScriptSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of ``script``.

    Args:
        reply: What to say to whatever comes; ``None``: say the input's text again.
        calls: What to call in answer to a conversation that does not end with a function's
            output; those that it does not offer are left out. With one, ``preamble`` is said
            first, and nothing else.
        words_per_chunk: How many words each chunk holds; the last number repeats.
        delay_steps: Steps without output before the first chunk of each input.
    """

    reply: str | None = None
    calls: tuple[ScriptCall, ...] = ()
    preamble: str = ""
    words_per_chunk: tuple[int, ...] = (1,)
    delay_steps: int = 0
    max_batch: int = 64
    fault: Fault | None = None


class ToneSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of ``tone``.

    Args:
        ms_per_character: How long each character of the text sounds.
        chunk_ms: Length of each chunk; the last number repeats.
        delay_steps: Steps without output before the first chunk of each input.
    """

    ms_per_character: int = 60
    chunk_ms: tuple[int, ...] = (100,)
    delay_steps: int = 0
    max_batch: int = 64
    fault: Fault | None = None


def tone_hz(text: str) -> int:
    """Pitch of a text: the same for the same text, and rarely the same for two texts."""
    return _LOWEST_TONE_HZ + _TONE_STEP_HZ * (sum(text.encode()) % _TONES)


@cache
def _tone_loop(hz: int) -> bytes:
    step = 2 * math.pi * hz / TONE_RATE_HZ
    samples = array("h", (round(_TONE_LEVEL * math.sin(step * n)) for n in range(_LOOP_SAMPLES)))
    if sys.byteorder == "big":
        samples.byteswap()
    return samples.tobytes()


@dataclass(slots=True)
class _Playback:
    """How far a job has come.

    Args:
        chunks: Made from inputs, not yet given; an empty one is a step of delay.
        given: Chunks given so far.
        text_end: Offset in the job's text up to which inputs were taken.
        sample: End of the audio made so far.
    """

    chunks: deque[tuple[Payload, ...]] = field(default_factory=deque)
    given: int = 0
    text: str = ""
    text_end: int = 0
    sample: int = 0


class _Scripted:
    """Plays chunks and faults; a subclass says how an input becomes chunks."""

    def __init__(self, max_batch: int, delay_steps: int, fault: Fault | None) -> None:
        self.max_batch = max_batch
        self._delay_steps = delay_steps
        self._fault = fault

    def warm_up(self) -> None:
        """Nothing gets faster."""

    def open(self, job: Job) -> None:
        """Start at the first chunk."""
        job.state = _Playback()

    def ready(self, job: Job) -> bool:
        """A chunk or an input is waiting."""
        return bool(job.inputs or cast(_Playback, job.state).chunks)

    def step(self, jobs: Sequence[Job]) -> Sequence[Step]:
        """Give one chunk of each job."""
        return step_apart(self._step_one, jobs)

    def close(self, job: Job) -> None:
        """Forget the job."""
        job.state = None

    def _chunks(
        self, payload: Payload, text: str, playback: _Playback
    ) -> Iterator[tuple[Payload, ...]]:
        raise NotImplementedError

    def _step_one(self, job: Job) -> Step:
        playback = cast(_Playback, job.state)
        if not playback.chunks:
            payload = job.inputs.popleft()
            text = _text_of(payload)
            if text is None:
                kind = type(payload).__name__
                return Step(error=EngineError(f"a scripted runner reads text, not {kind}"))
            playback.text += text
            playback.chunks.extend([()] * self._delay_steps)
            playback.chunks.extend(self._chunks(payload, text, playback))
        chunk = playback.chunks.popleft() if playback.chunks else ()
        if not chunk:
            return self._finished(job, playback, ())
        fault = self._fault
        due = (
            fault is not None
            and fault.at_chunk == playback.given
            and fault.when_text in playback.text
        )
        playback.given += 1
        if fault is None or not due:
            return self._finished(job, playback, chunk)
        match fault.kind:
            case "raise":
                return Step(error=EngineError(f"scripted fault at chunk {fault.at_chunk}"))
            case "crash":
                raise RuntimeError("scripted crash")
            case "hang":
                threading.Event().wait()
                return Step()
            case "late":
                playback.chunks.extendleft([chunk, *[()] * (fault.steps - 1)])
                return Step()
            case "twice":
                return self._finished(job, playback, (*chunk, *chunk))
            case "short":
                return Step(done=True)

    @staticmethod
    def _finished(job: Job, playback: _Playback, outputs: tuple[Payload, ...]) -> Step:
        return Step(outputs, done=job.input_ended and not job.inputs and not playback.chunks)


class ScriptRunner(_Scripted):
    """Says words."""

    def __init__(self, settings: ScriptSettings) -> None:
        super().__init__(settings.max_batch, settings.delay_steps, settings.fault)
        self._settings = settings

    def _chunks(
        self, payload: Payload, text: str, playback: _Playback
    ) -> Iterator[tuple[Payload, ...]]:
        calls = self._calls(payload)
        reply = self._settings.preamble if calls else self._settings.reply
        words = (text if reply is None else reply).split()
        sizes = _repeating_last(self._settings.words_per_chunk)
        start = 0
        while start < len(words):
            end = start + next(sizes)
            piece = " ".join(words[start:end])
            yield (TextDelta(piece if start == 0 else f" {piece}"),)
            start = end
        for index, call in enumerate(calls):
            half = len(call.arguments) // 2
            yield (ToolCallDelta(index, f"call_{index}", call.name, call.arguments[:half]),)
            yield (ToolCallDelta(index, arguments=call.arguments[half:]),)
        if isinstance(payload, ChatRequest):
            yield (TokenUsage(input_tokens=len(text.split()), output_tokens=len(words)),)

    def _calls(self, payload: Payload) -> list[ScriptCall]:
        if not isinstance(payload, ChatRequest) or payload.messages[-1].role == "tool":
            return []
        return [call for call in self._settings.calls if payload.tools.allows(call.name)]


class ToneRunner(_Scripted):
    """Sounds one tone for each text, and marks where it ends."""

    def __init__(self, settings: ToneSettings) -> None:
        super().__init__(settings.max_batch, settings.delay_steps, settings.fault)
        self._settings = settings

    def _chunks(
        self, payload: Payload, text: str, playback: _Playback
    ) -> Iterator[tuple[Payload, ...]]:
        if isinstance(payload, SpeakText):
            playback.text_end = payload.text_end
        else:
            playback.text_end += len(text)
        length = ms_to_samples(len(text) * self._settings.ms_per_character, TONE_RATE_HZ)
        if not length:
            yield (SpeechMark(playback.text_end, playback.sample),)
            return
        pcm = _tone_loop(tone_hz(text)) * (length // _LOOP_SAMPLES + 1)
        sizes = _repeating_last(self._settings.chunk_ms)
        start = 0
        while start < length:
            end = min(length, start + ms_to_samples(next(sizes), TONE_RATE_HZ))
            piece = pcm[start * SAMPLE_BYTES : end * SAMPLE_BYTES]
            audio = AudioChunk(piece, TONE_RATE_HZ, playback.sample)
            playback.sample += end - start
            start = end
            if start < length:
                yield (audio,)
            else:
                yield (audio, SpeechMark(playback.text_end, playback.sample))


def _text_of(payload: Payload) -> str | None:
    match payload:
        case TextDelta(text=text) | SpeakText(text=text) | Transcript(text=text):
            return text
        case ChatRequest(messages=messages):
            return messages[-1].content if messages else ""
        case _:
            return None


def _repeating_last(numbers: Sequence[int]) -> Iterator[int]:
    yield from numbers
    while True:
        yield numbers[-1]


SCRIPT = RunnerType.plain(ScriptSettings, ScriptRunner, sleep_levels=(2,))
TONE = RunnerType.plain(ToneSettings, ToneRunner, sleep_levels=(2,))
