"""Speech from the hibari model: clauses in, audio in small pieces and exact marks out.

A clause is made whole (a second of speech takes ten milliseconds) and given in pieces, one a step,
so that a cancel takes effect between them and a job without credit stops. This module must not
know who listens.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Protocol, cast

import msgspec
import numpy as np

from duologue.core.audio import SAMPLE_BYTES, ms_to_samples
from duologue.core.errors import EngineError
from duologue.engines.payloads import AudioChunk, Payload, SpeakText, SpeechMark
from duologue.engines.runners.apart import step_apart
from duologue.engines.runners.contract import Job, Step
from duologue.engines.runners.registry import RunnerType
from duologue.engines.runners.tts.hibari_voice import RATE_HZ, HibariVoice, Utterance

_SLOWEST, _FASTEST = 0.5, 2.0
"""What the model can do."""

_CLOSERS = "\"')]*”’"  # noqa: RUF001
_FULL_SCALE = 32767
_WARM_UP = "Hello! Warming up, zyxomma."
"""With a word that no dictionary holds, for the model that spells such words."""

Pause = Annotated[int, msgspec.Meta(ge=0, le=2000)]


class HibariSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of ``hibari``.

    Args:
        voice: One that is on this machine; ``heart`` is part of the package.
        gain: Brings the model's speech to the usual loudness, with room for its loudest sounds.
        first_chunk_ms: Length of a stream's first piece.
        chunk_ms: Length of its other pieces.
        comma_ms: Silence between clauses after a comma.
        sentence_ms: Silence between clauses after the end of a sentence.
    """

    voice: str = "heart"
    threads: Annotated[int, msgspec.Meta(ge=1, le=64)] = 1
    gain: Annotated[float, msgspec.Meta(gt=0, le=4)] = 1.6
    first_chunk_ms: Annotated[int, msgspec.Meta(ge=20, le=1000)] = 100
    chunk_ms: Annotated[int, msgspec.Meta(ge=20, le=1000)] = 200
    comma_ms: Pause = 130
    sentence_ms: Pause = 280


class Voice(Protocol):
    """Says a clause."""

    def speak(self, text: str, speed: float, pause_samples: int) -> Utterance:
        """Return the sound of ``text``, with silence between its sentences."""
        ...


@dataclass(slots=True)
class _Speech:
    """How far a job has come.

    Args:
        steps: Outputs of the steps to come.
        sample: End of what was made so far.
        pause_ms: Silence due before the next clause.
    """

    steps: deque[tuple[Payload, ...]] = field(default_factory=deque)
    sample: int = 0
    pause_ms: float = 0.0


class HibariRunner:
    """Speaks. One job a step: the first sound of one must not wait for the clauses of others."""

    def __init__(self, voice: Voice, settings: HibariSettings) -> None:
        self.max_batch = 1
        self._voice = voice
        self._settings = settings

    def warm_up(self) -> None:
        """Load the dictionaries."""
        self._voice.speak(_WARM_UP, 1.0, 0)

    def open(self, job: Job) -> None:
        """Begin in silence."""
        job.state = _Speech()

    def ready(self, job: Job) -> bool:
        """A clause waits, or is not all given."""
        return bool(cast(_Speech, job.state).steps or job.inputs)

    def step(self, jobs: Sequence[Job]) -> Sequence[Step]:
        """Give the next piece of each job."""
        return step_apart(self._step_one, jobs)

    def close(self, job: Job) -> None:
        """Forget what was not given."""
        job.state = None

    def _step_one(self, job: Job) -> Step:
        speech = cast(_Speech, job.state)
        if not speech.steps:
            clause = job.inputs.popleft()
            if not isinstance(clause, SpeakText):
                kind = type(clause).__name__
                return Step(error=EngineError(f"a synthesiser reads SpeakText, not {kind}"))
            speech.steps.extend(self._speak(clause, speech))
        outputs = speech.steps.popleft()
        return Step(outputs, done=job.input_ended and not job.inputs and not speech.steps)

    def _speak(self, clause: SpeakText, speech: _Speech) -> Iterator[tuple[Payload, ...]]:
        speed = min(max(clause.speed, _SLOWEST), _FASTEST)
        between = ms_to_samples(self._settings.sentence_ms / speed, RATE_HZ)
        utterance = self._voice.speak(clause.text, speed, between) if clause.text else None
        if utterance is None or not utterance.samples.size:
            yield (SpeechMark(clause.text_end, speech.sample),)
            return
        pause = ms_to_samples(speech.pause_ms, RATE_HZ)
        speech.pause_ms = self._pause_after_ms(clause.text) / speed
        marks = deque(_marks(clause, utterance, speech.sample + pause))
        scaled = np.clip(utterance.samples * self._settings.gain, -1, 1) * _FULL_SCALE
        pcm = bytes(pause * SAMPLE_BYTES) + scaled.astype("<i2").tobytes()
        for piece in self._pieces(pcm, is_first=not speech.sample):
            chunk = AudioChunk(piece, RATE_HZ, speech.sample)
            speech.sample += len(piece) // SAMPLE_BYTES
            outputs: list[Payload] = [chunk]
            while marks and marks[0].sample <= speech.sample:
                outputs.append(marks.popleft())
            yield tuple(outputs)

    def _pieces(self, pcm: bytes, *, is_first: bool) -> Iterator[bytes]:
        settings = self._settings
        usual = ms_to_samples(settings.chunk_ms, RATE_HZ) * SAMPLE_BYTES
        size = ms_to_samples(settings.first_chunk_ms, RATE_HZ) * SAMPLE_BYTES if is_first else usual
        start = 0
        while start < len(pcm):
            # A short rest goes along with the piece before it.
            end = len(pcm) if len(pcm) - start - size < usual // 2 else start + size
            yield pcm[start:end]
            start, size = end, usual

    def _pause_after_ms(self, text: str) -> int:
        last = text.rstrip(_CLOSERS)[-1:]
        if last and last in ".!?…":
            return self._settings.sentence_ms
        return self._settings.comma_ms if last and last in ",;:" else 0


def _marks(clause: SpeakText, utterance: Utterance, start: int) -> Iterator[SpeechMark]:
    """Mark the words whose place is known, and the end of the clause."""
    ends = dict(utterance.word_ends)
    for text_offset, transcript_offset in clause.word_ends:
        end = ends.get(text_offset)
        if end is not None and transcript_offset < clause.text_end:
            yield SpeechMark(transcript_offset, start + end)
    yield SpeechMark(clause.text_end, start + utterance.samples.size)


def build(settings: HibariSettings) -> HibariRunner:
    """Load a voice."""
    return HibariRunner(HibariVoice(settings.voice, settings.threads), settings)


HIBARI = RunnerType.plain(HibariSettings, build, sleep_levels=(2,))
