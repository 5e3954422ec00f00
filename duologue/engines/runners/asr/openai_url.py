"""Recognisers behind any server that speaks ``POST /audio/transcriptions``.

Audio is kept until text is asked for, then uploaded as one WAV file by a thread per request.
Servers have no streams here, so partials cost a whole upload each and are off unless asked for.
This module must not know who asks, or when a turn ends.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, cast

import msgspec

from duologue.core.audio import SAMPLE_BYTES, ms_to_samples
from duologue.core.errors import EngineError
from duologue.engines.payloads import (
    AudioChunk,
    DecodeSpeech,
    HeardDetails,
    HeardWord,
    ListenOptions,
    Transcript,
)
from duologue.engines.runners.apart import step_apart
from duologue.engines.runners.asr.upload import (
    Form,
    RepliedWord,
    Reply,
    transcription_form,
    transcription_reply,
    wav_file,
)
from duologue.engines.runners.contract import Job, Step
from duologue.engines.runners.http_stream import HttpPost, Upstream, read_api_key
from duologue.engines.runners.registry import RunnerType, Wake
from duologue.engines.runners.speech_stream import SPEECH_RATE_HZ, SpeechStream

Seconds = Annotated[float, msgspec.Meta(gt=0, le=600)]

_LEAST_SAMPLES = ms_to_samples(100, SPEECH_RATE_HZ)
"""Servers refuse shorter files, and there is no word in them."""

_LONGEST_ANSWER_BYTES = 1024 * 1024

_USUAL = ListenOptions()


class TranscribeUrlSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of ``openai_transcribe``.

    Args:
        base_url: Up to and with the version.
        model: As the server calls it.
        api_key_file: A file that holds the key and nothing else; empty: none is sent.
        language: What is spoken, as ISO 639-1; empty: the server finds out.
        partials: Upload for partial requests too, else they are not answered.
        max_audio_s: Longest utterance; memory is bounded by it.
        max_batch: How many utterances are looked after. At least the stage's ``max_jobs``.
        connect_timeout_s: To reach the server.
        silence_timeout_s: Longest wait for the server's answer.
    """

    base_url: str
    model: str
    api_key_file: str = ""
    language: str = ""
    partials: bool = False
    max_audio_s: Annotated[float, msgspec.Meta(gt=0, le=1500)] = 120.0
    max_batch: Annotated[int, msgspec.Meta(ge=1, le=1024)] = 64
    connect_timeout_s: Seconds = 5.0
    silence_timeout_s: Seconds = 30.0


class _Call:
    """One upload under way, and what came of it."""

    def __init__(self, request: DecodeSpeech, post: HttpPost) -> None:
        self.request = request
        self.post = post
        self.reply = Reply("")
        self.error: EngineError | None = EngineError("the answer could not be read")
        self.over = False


@dataclass(slots=True)
class _Dictation:
    """A job: its audio, the newest request that was not begun, and the one under way."""

    stream: SpeechStream = field(default_factory=SpeechStream)
    pcm: bytearray = field(default_factory=bytearray)
    waiting: DecodeSpeech | None = None
    call: _Call | None = None


class TranscribeUrlRunner:
    """Lets others listen."""

    def __init__(self, settings: TranscribeUrlSettings, upstream: Upstream, wake: Wake) -> None:
        self.max_batch = settings.max_batch
        self._settings = settings
        self._upstream = upstream
        self._wake = wake
        self._limit_bytes = int(settings.max_audio_s * SPEECH_RATE_HZ) * SAMPLE_BYTES

    def warm_up(self) -> None:
        """Nothing is asked of a server that may cost money."""

    def open(self, job: Job) -> None:
        """Begin an utterance."""
        job.state = _Dictation()

    def ready(self, job: Job) -> bool:
        """There is something to take, to ask or to hand out, or nothing more will come."""
        dictation = cast(_Dictation, job.state)
        if dictation.call is not None:
            return bool(job.inputs) or dictation.call.over
        return bool(job.inputs) or dictation.waiting is not None or job.input_ended

    def step(self, jobs: Sequence[Job]) -> Sequence[Step]:
        """Take what is new; hand out what has come; ask what waits."""
        return step_apart(self._step_one, jobs)

    def close(self, job: Job) -> None:
        """Hang up."""
        dictation = cast(_Dictation, job.state)
        if dictation.call is not None:
            dictation.call.post.abort()
        job.state = None

    def _step_one(self, job: Job) -> Step:
        dictation = cast(_Dictation, job.state)
        outputs: list[Transcript] = []
        try:
            self._take_in(job, dictation)
            call = dictation.call
            if call is not None and call.over:
                dictation.call = None
                outputs += _answer(call, dictation.stream)
            self._ask(dictation, outputs)
        except EngineError as exc:
            return Step(outputs, error=exc)
        return Step(outputs, done=job.input_ended and dictation.call is None)

    def _take_in(self, job: Job, dictation: _Dictation) -> None:
        while job.inputs:
            match job.inputs.popleft():
                case AudioChunk() as chunk:
                    dictation.pcm += dictation.stream.append(chunk)
                    if len(dictation.pcm) > self._limit_bytes:
                        raise EngineError(
                            f"an utterance is longer than {self._settings.max_audio_s:g} s; "
                            "end the turn earlier, or raise max_audio_s"
                        )
                case DecodeSpeech(kind="partial") if not self._settings.partials:
                    pass
                case DecodeSpeech() as request:
                    dictation.waiting = request
                case other:
                    raise EngineError(f"a recogniser takes audio, not {type(other).__name__}")
        if job.input_ended:
            dictation.pcm += dictation.stream.finish()

    def _ask(self, dictation: _Dictation, outputs: list[Transcript]) -> None:
        """Begin what waits, unless an answer is on its way that is worth waiting for."""
        request, call = dictation.waiting, dictation.call
        if request is None:
            return
        if call is not None:
            if request.kind == "partial" or call.request.kind == "final":
                return
            call.post.abort()
            dictation.call = None
        dictation.waiting = None
        end = dictation.stream.position(request.end_sample) * SAMPLE_BYTES
        pcm = bytes(dictation.pcm[: max(0, end)])
        if len(pcm) < _LEAST_SAMPLES * SAMPLE_BYTES:
            details = None if request.options is None else HeardDetails(no_speech=1.0)
            outputs.append(Transcript("", request.kind, request.end_sample, details))
            return
        options = request.options or _USUAL
        form = self._form(pcm, options)
        path = "/audio/translations" if options.translate else "/audio/transcriptions"
        post = HttpPost(self._upstream, path, form.body, form.content_type)
        dictation.call = call = _Call(request, post)
        threading.Thread(
            target=_follow, args=(call, self._wake), name="transcribe", daemon=True
        ).start()

    def _form(self, pcm: bytes, options: ListenOptions) -> Form:
        fields = {"model": self._settings.model, "response_format": "json"}
        language = options.language or self._settings.language
        if language and not options.translate:
            fields["language"] = language
        if options.prompt:
            fields["prompt"] = options.prompt
        if options.temperature:
            fields["temperature"] = f"{options.temperature:g}"
        if options.words and not options.translate:
            fields["response_format"] = "verbose_json"
            fields["timestamp_granularities[]"] = "word"
        return transcription_form(wav_file(pcm, SPEECH_RATE_HZ), fields)


def _answer(call: _Call, stream: SpeechStream) -> Sequence[Transcript]:
    request = call.request
    if call.error is None:
        details = None
        if request.options is not None:
            details = HeardDetails(tuple(_on_clock(word, stream) for word in call.reply.words))
        return (Transcript(call.reply.text, request.kind, request.end_sample, details),)
    if request.kind == "final":
        raise call.error
    return ()  # whoever shows partials can do without one


def _on_clock(word: RepliedWord, stream: SpeechStream) -> HeardWord:
    start, end = (
        stream.clock_sample(round(max(0.0, second) * SPEECH_RATE_HZ))
        for second in (word.start, word.end)
    )
    return HeardWord(f" {word.word.strip()}", start, end, 1.0)


def _follow(call: _Call, wake: Wake) -> None:
    """Upload and wait for the answer, in a thread of its own."""
    answer = bytearray()
    try:
        for data in call.post.chunks():
            answer += data
            if len(answer) > _LONGEST_ANSWER_BYTES:
                raise EngineError(f"an answer is longer than {_LONGEST_ANSWER_BYTES} bytes")
        call.reply = transcription_reply(bytes(answer))
        call.error = None
    except EngineError as exc:
        call.error = exc
    finally:
        call.over = True
        wake()


def build(settings: TranscribeUrlSettings, wake: Wake) -> TranscribeUrlRunner:
    """Check the settings; the server is not asked before there is speech."""
    upstream = Upstream(
        settings.base_url,
        read_api_key(settings.api_key_file),
        settings.connect_timeout_s,
        settings.silence_timeout_s,
    )
    upstream.check()
    return TranscribeUrlRunner(settings, upstream, wake)


OPENAI_TRANSCRIBE = RunnerType(TranscribeUrlSettings, build, wakes_itself=True)
