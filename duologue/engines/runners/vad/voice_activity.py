"""The runner around a voice activity detector: chunks in, one probability per window out.

Jobs send ``AudioChunk`` in any cutting and at any rate; the windows, and so the results, are the
same. In long quiet most windows are not reported (``quiet_gate``). This module must not know how
a detector judges.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

from duologue.core.audio import SAMPLE_BYTES
from duologue.core.errors import EngineError
from duologue.engines.payloads import AudioChunk, VoiceActivity
from duologue.engines.runners.contract import Job, Step
from duologue.engines.runners.speech_stream import SPEECH_RATE_HZ, AudioBreak, SpeechStream
from duologue.engines.runners.vad.quiet_gate import QuietGate

WINDOWS_A_STEP = 32
"""About a second of audio: a sender ten times as fast as speech is kept up with, and one that
sends a whole recording does not hold up the others."""


class Detector(Protocol):
    """Judges windows of 16 kHz PCM, each after those before it of the same stream."""

    window_samples: int

    def open(self) -> Any:
        """Return what a new stream must remember from window to window."""
        ...

    def judge(self, memories: Sequence[Any], windows: Sequence[bytes]) -> Sequence[float]:
        """Return the probability of speech in one window each of several streams.

        NaN fails that stream alone.
        """
        ...


@dataclass(slots=True)
class _Listening:
    memory: Any
    stream: SpeechStream = field(default_factory=SpeechStream)
    gate: QuietGate = field(default_factory=lambda: QuietGate(SPEECH_RATE_HZ))
    pending: bytearray = field(default_factory=bytearray)
    judged: int = 0
    """End of the last window that was taken, in samples of the 16 kHz run."""
    finished: bool = False


@dataclass(slots=True)
class _Work:
    """What one job brings to a step, and what it gets out of it."""

    listening: _Listening
    windows: list[bytes]
    outputs: list[VoiceActivity] = field(default_factory=list)
    error: EngineError | None = None


class VoiceActivityRunner:
    """Batches the windows of all jobs, one window of each job at a time.

    A break in the audio starts a job's detector anew at the place where it goes on.
    """

    def __init__(self, detector: Detector, max_batch: int) -> None:
        self.max_batch = max_batch
        self._detector = detector
        self._window_bytes = detector.window_samples * SAMPLE_BYTES

    def warm_up(self) -> None:
        """Judge silence, alone and in a batch."""
        window = bytes(self._window_bytes)
        for size in (1, min(8, self.max_batch)):
            self._detector.judge([self._detector.open() for _ in range(size)], [window] * size)

    def open(self, job: Job) -> None:
        """Begin to listen."""
        job.state = _Listening(self._detector.open())

    def ready(self, job: Job) -> bool:
        """There is audio to take, a window to judge, or the tail of a stream that ended."""
        listening = cast(_Listening, job.state)
        return (
            bool(job.inputs)
            or len(listening.pending) >= self._window_bytes
            or (job.input_ended and not listening.finished)
        )

    def step(self, jobs: Sequence[Job]) -> Sequence[Step]:
        """Judge the whole windows that wait, up to a bound for each job."""
        work = [self._take_windows(job) for job in jobs]
        for turn in range(max(len(each.windows) for each in work)):
            self._judge(
                [each for each in work if len(each.windows) > turn and not each.error], turn
            )
        return [Step(each.outputs, error=each.error) for each in work]

    def close(self, job: Job) -> None:
        """Forget the job."""
        job.state = None

    def _take_windows(self, job: Job) -> _Work:
        listening = cast(_Listening, job.state)
        pending = listening.pending
        bound = WINDOWS_A_STEP * self._window_bytes
        work = _Work(listening, [])
        try:
            while job.inputs and len(pending) < bound:
                self._append(listening, job.inputs.popleft())
            if job.input_ended and not job.inputs and not listening.finished:
                listening.finished = True
                pending += listening.stream.finish()
        except EngineError as exc:
            work.error = exc
            return work
        count = min(len(pending) // self._window_bytes, WINDOWS_A_STEP)
        for start in range(0, count * self._window_bytes, self._window_bytes):
            work.windows.append(bytes(pending[start : start + self._window_bytes]))
        del pending[: count * self._window_bytes]
        return work

    def _append(self, listening: _Listening, payload: object) -> None:
        if not isinstance(payload, AudioChunk):
            raise EngineError(
                f"a voice activity detector takes audio, not {type(payload).__name__}"
            )
        try:
            listening.pending += listening.stream.append(payload)
        except AudioBreak:
            listening.memory = self._detector.open()
            listening.stream = SpeechStream()
            listening.gate = QuietGate(SPEECH_RATE_HZ)
            listening.pending.clear()
            listening.judged = 0
            listening.pending += listening.stream.append(payload)

    def _judge(self, works: Sequence[_Work], turn: int) -> None:
        probabilities = self._detector.judge(
            [work.listening.memory for work in works], [work.windows[turn] for work in works]
        )
        for work, probability in zip(works, probabilities, strict=True):
            listening = work.listening
            start = listening.judged
            listening.judged += self._detector.window_samples
            end_sample = listening.stream.clock_sample(listening.judged)
            if not math.isfinite(probability):
                work.error = EngineError(
                    f"the detector found no probability for the window before sample {end_sample}"
                )
            elif listening.gate.admits(probability, start, listening.judged):
                work.outputs.append(VoiceActivity(probability, end_sample))
