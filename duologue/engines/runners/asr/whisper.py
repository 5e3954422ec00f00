"""Whisper as a stream: audio is appended, and its text so far is asked for now and then.

A job takes ``AudioChunk`` and ``DecodeSpeech`` and answers with ``Transcript``. Of several
requests that wait, only a job's newest is answered. Finals go before everything else, of whatever
job; partials wait until nothing else is to be done. This module must not know who asks, or when
a turn ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Annotated, cast

import msgspec

from duologue.core.audio import ms_to_samples
from duologue.core.errors import EngineError
from duologue.engines.payloads import (
    AudioChunk,
    DecodeSpeech,
    HeardDetails,
    HeardWord,
    ListenOptions,
    Payload,
    Transcript,
)
from duologue.engines.runners import mel
from duologue.engines.runners.apart import step_apart
from duologue.engines.runners.asr.repetition import first_turn
from duologue.engines.runners.asr.utterance import SegmentPosition, Utterance
from duologue.engines.runners.asr.whisper_model import Floats, Hypothesis, Recognise, load_whisper
from duologue.engines.runners.contract import Job, Step
from duologue.engines.runners.registry import RunnerType
from duologue.engines.runners.speech_stream import SPEECH_RATE_HZ

_FRAMES_PER_S = SPEECH_RATE_HZ // mel.HOP_SAMPLES
_WINDOW_MARGIN_S = 0.5
"""Silence that the model should see at the end of a window, or it goes on inventing."""

_LEAST_SAMPLES = ms_to_samples(50, SPEECH_RATE_HZ)
"""There is no word in less."""

_NOTHING = Hypothesis("", 0.0, 1.0)

Seconds = Annotated[float, msgspec.Meta(ge=3, le=30)]


class WhisperSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of ``whisper``.

    Args:
        model_path: Path of the CTranslate2 folder.
        language: What is spoken, where the model knows several languages.
        threads: Threads of one decode.
        compute_type: Number format of CTranslate2.
        window_s: Window of the encoder, hence the longest segment.
        short_window_s: Window for audio that fits, at less than half the cost. Now and then the
            model loses its way in it and repeats itself; then a final is decoded again in the
            long one.
        partial_window_s: Window for a partial that fits, a third cheaper again; what is repeated
            in it is left out.
        doubt_log_prob: A final whose mean log-probability is lower is decoded again, too.
        beam_size: Alternatives that a final decode follows. A partial follows one.
        max_no_speech: Text with a higher probability of no speech is dropped.
        min_log_prob: Text with a lower mean log-probability is dropped.
        max_batch: How many jobs one step may look at; it decodes for one.
    """

    model_path: str
    language: str = "en"
    threads: Annotated[int, msgspec.Meta(ge=1, le=64)] = 2
    compute_type: str = "int8"
    window_s: Seconds = 15.0
    short_window_s: Seconds = 10.0
    partial_window_s: Seconds = 6.0
    doubt_log_prob: Annotated[float, msgspec.Meta(ge=-10, le=0)] = -0.4
    beam_size: Annotated[int, msgspec.Meta(ge=1, le=16)] = 2
    max_no_speech: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.5
    min_log_prob: Annotated[float, msgspec.Meta(ge=-10, le=0)] = -1.0
    max_batch: Annotated[int, msgspec.Meta(ge=1, le=1024)] = 64

    def __post_init__(self) -> None:
        """Check what concerns two fields."""
        if self.short_window_s > self.window_s:
            raise ValueError(f"short_window_s is {self.short_window_s}, window_s {self.window_s}")
        if self.partial_window_s > self.short_window_s:
            raise ValueError(
                f"partial_window_s is {self.partial_window_s}, short_window_s {self.short_window_s}"
            )


@dataclass(frozen=True, slots=True)
class _Answer:
    """Text of the open segment up to a position."""

    final: bool
    end: SegmentPosition
    text: str


@dataclass(slots=True)
class _Recognition:
    """State of a job.

    Args:
        request: The newest one that was not answered.
        asked: Orders requests of all jobs by age.
        answer: The last one, if no segment was closed since.
    """

    utterance: Utterance
    request: DecodeSpeech | None = None
    asked: int = 0
    answer: _Answer | None = None
    finished: bool = False


class WhisperRunner:
    """Takes in what all jobs send, then decodes once, for the most urgent of them.

    A decode cannot be interrupted; a job that is cancelled meanwhile is dropped after it.
    """

    def __init__(self, settings: WhisperSettings, recognise: Recognise) -> None:
        self.max_batch = settings.max_batch
        self._settings = settings
        self._recognise = recognise
        self._segment_samples = ms_to_samples(
            (settings.window_s - _WINDOW_MARGIN_S) * 1000, SPEECH_RATE_HZ
        )
        self._order = count(1)

    def warm_up(self) -> None:
        """Decode silence in all windows."""
        silence = mel.LogMelStream().frames(0)
        for window_s in (self._settings.window_s, self._settings.short_window_s):
            self._hear(silence, window_s, speech_s=1.0, final=True)
        self._hear(silence, self._settings.partial_window_s, speech_s=1.0, final=False)

    def open(self, job: Job) -> None:
        """Begin an utterance."""
        job.state = _Recognition(Utterance(self._segment_samples))

    def ready(self, job: Job) -> bool:
        """There is something to take in, to decode, or to finish."""
        state = cast(_Recognition, job.state)
        return (
            bool(job.inputs)
            or state.request is not None
            or state.utterance.must_be_cut
            or (job.input_ended and not state.finished)
        )

    def step(self, jobs: Sequence[Job]) -> Sequence[Step]:
        """Take in everything; decode for one job."""
        steps = step_apart(self._take_in, jobs)
        waiting = [
            (self._urgency(cast(_Recognition, job.state)), index)
            for index, job in enumerate(jobs)
            if steps[index].error is None and not job.cancelled and self._has_work(job)
        ]
        if waiting:
            _, index = min(waiting)
            (steps[index],) = step_apart(self._decode, jobs[index : index + 1])
        return steps

    def close(self, job: Job) -> None:
        """Forget the utterance."""
        job.state = None

    def _take_in(self, job: Job) -> Step:
        state = cast(_Recognition, job.state)
        # A segment that is too long is cut before more audio is taken: memory is bounded.
        while job.inputs and not state.utterance.must_be_cut:
            match job.inputs.popleft():
                case AudioChunk() as chunk:
                    state.utterance.append(chunk)
                case DecodeSpeech() as request:
                    state.request = request
                    state.asked = next(self._order)
                case other:
                    raise EngineError(f"a recogniser takes audio, not {type(other).__name__}")
        if job.input_ended and not job.inputs and not state.finished:
            state.utterance.finish()
            state.finished = True
        return Step()

    @staticmethod
    def _has_work(job: Job) -> bool:
        state = cast(_Recognition, job.state)
        return state.request is not None or state.utterance.must_be_cut

    @staticmethod
    def _urgency(state: _Recognition) -> tuple[int, int]:
        """Finals, then segments to be closed, then partials; the older first."""
        if state.request is not None and state.request.kind == "final":
            return (0, state.asked)
        return (1 if state.utterance.must_be_cut else 2, state.asked)

    def _decode(self, job: Job) -> Step:
        return Step(self._answers(cast(_Recognition, job.state)))

    def _answers(self, state: _Recognition) -> Sequence[Payload]:
        utterance = state.utterance
        request = state.request
        if request is None or not utterance.fits(end := utterance.position(request.end_sample)):
            cut = utterance.cut_position()
            utterance.close_segment(cut, self._text(utterance, cut, final=True))
            state.answer = None
            return ()
        state.request = None
        if request.options is not None:
            return (self._detailed(utterance, end, request, request.options),)
        final = request.kind == "final"
        text = self._known(state, end, final)
        if text is None:
            text = self._text(utterance, end, final=final)
            state.answer = _Answer(final, end, text)
        return (Transcript(utterance.text_with(text), request.kind, request.end_sample),)

    @staticmethod
    def _known(state: _Recognition, end: SegmentPosition, final: bool) -> str | None:
        """The last answer, where only silence came after it and it was decoded as well as now."""
        answer = state.answer
        if answer is None or (final and not answer.final):
            return None
        return answer.text if state.utterance.only_silence_between(answer.end, end) else None

    def _detailed(
        self,
        utterance: Utterance,
        end: SegmentPosition,
        request: DecodeSpeech,
        options: ListenOptions,
    ) -> Transcript:
        if end.segment:
            raise EngineError(
                f"with options, audio may last {self._settings.window_s - _WINDOW_MARGIN_S:g} s: "
                "send it in parts"
            )
        heard = self._heard(utterance, end, final=request.kind == "final", options=options)
        words = tuple(
            HeardWord(
                word.text,
                utterance.clock_sample(int(word.start_s * SPEECH_RATE_HZ)),
                utterance.clock_sample(int(word.end_s * SPEECH_RATE_HZ)),
                word.probability,
                word.tokens,
            )
            for word in heard.words
        )
        details = HeardDetails(words, heard.log_prob, heard.no_speech)
        return Transcript(heard.text, request.kind, request.end_sample, details)

    def _text(self, utterance: Utterance, end: SegmentPosition, *, final: bool) -> str:
        return self._heard(utterance, end, final=final).text

    def _heard(
        self,
        utterance: Utterance,
        end: SegmentPosition,
        *,
        final: bool,
        options: ListenOptions | None = None,
    ) -> Hypothesis:
        """Hear the open segment up to a position; no text where there was no speech."""
        settings = self._settings
        if end.sample < _LEAST_SAMPLES:
            return _NOTHING
        frames = utterance.frames(end)
        speech_s = end.sample / SPEECH_RATE_HZ
        needed_s = speech_s + _WINDOW_MARGIN_S
        short = needed_s <= settings.short_window_s
        window_s = settings.short_window_s if short else settings.window_s
        if not final and needed_s <= settings.partial_window_s:
            window_s = settings.partial_window_s
        heard = self._hear(frames, window_s, speech_s=speech_s, final=final, options=options)
        once = first_turn(heard.text)
        if short and final and (once is not None or heard.log_prob < settings.doubt_log_prob):
            heard = self._hear(
                frames, settings.window_s, speech_s=speech_s, final=True, options=options
            )
        if heard.no_speech > settings.max_no_speech or heard.log_prob < settings.min_log_prob:
            return replace(heard, text="", words=())
        return heard if final or once is None else replace(heard, text=once)

    def _hear(
        self,
        frames: Floats,
        window_s: float,
        *,
        speech_s: float,
        final: bool,
        options: ListenOptions | None = None,
    ) -> Hypothesis:
        return self._recognise(
            mel.as_features(frames, int(window_s * _FRAMES_PER_S)),
            beam_size=self._settings.beam_size if final else 1,
            speech_s=speech_s,
            options=options,
        )


def build(settings: WhisperSettings) -> WhisperRunner:
    """Load the model and make the runner."""
    recognise = load_whisper(
        settings.model_path,
        language=settings.language,
        threads=settings.threads,
        compute_type=settings.compute_type,
    )
    return WhisperRunner(settings, recognise)


WHISPER = RunnerType.plain(WhisperSettings, build, sleep_levels=(2,))
