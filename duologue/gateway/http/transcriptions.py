"""``POST /v1/audio/transcriptions`` and ``/translations``: a file in; text, subtitles, events out.

This module must not know how a recogniser hears.
"""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import aclosing

import msgspec
from aiohttp import web

from duologue.codecs.containers import AudioFileDecoder
from duologue.engines.payloads import ListenOptions
from duologue.gateway.errors import json_answer
from duologue.gateway.http.body import Form, form_message, read_form
from duologue.gateway.http.routes import EVENTS, FORM, JSON, Content, Route
from duologue.gateway.http.services import HttpServices
from duologue.gateway.http.streamed import event_stream
from duologue.gateway.speech.usage import Usage, heard_usage
from duologue.gateway.transcription.hearing import HeardWindow, Hearing
from duologue.gateway.transcription.languages import chosen_language, language_name
from duologue.gateway.transcription.segments import (
    Segment,
    SpokenWord,
    segments_of,
    spoken_words,
)
from duologue.gateway.transcription.subtitles import as_srt, as_vtt
from duologue.gateway.transcription.windows import WINDOW_RATE_HZ
from duologue.protocol.errors import ErrorCode, refused, shown

FORMATS = ("json", "text", "srt", "verbose_json", "vtt")
GRANULARITIES = ("segment", "word")
TEXT, SRT, VTT = "text/plain", "application/x-subrip", "text/vtt"

MAX_PROMPT_CHARS = 4096

_LISTS: Mapping[str, str] = {
    f"{name}{end}": name
    for name in ("timestamp_granularities", "include", "languages", "keywords")
    for end in ("", "[]")
}


class TranscriptionForm(msgspec.Struct, frozen=True, kw_only=True):
    """The fields beside ``file``. Unknown ones are ignored.

    Args:
        model: None: the default one.
        language: As ISO 639-1.
        languages: Alternatives to it.
        prompt: Text that may have come before: names and spellings are taken from it.
        keywords: More of those.
        include: ``logprobs``: how sure the recogniser is of each word, in the form ``json``.
        timestamp_granularities: In the form ``verbose_json``; ``segment`` where none is named.
        stream: Events, as the file is heard.
    """

    model: str | None = None
    language: str | None = None
    languages: list[str] = []
    prompt: str = ""
    keywords: list[str] = []
    response_format: str = "json"
    temperature: float = 0.0
    include: list[str] = []
    timestamp_granularities: list[str] = []
    stream: bool = False


class DurationUsage(msgspec.Struct, frozen=True, kw_only=True):
    """Counted by the length of the audio."""

    type: str = "duration"
    seconds: float


class Logprob(msgspec.Struct, frozen=True):
    """How sure a recogniser is of one word."""

    token: str
    logprob: float
    bytes: list[int]


class TranscriptionAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """The form ``json``."""

    text: str
    usage: DurationUsage
    logprobs: Sequence[Logprob] | None = None


class DetailedTranscription(msgspec.Struct, frozen=True, omit_defaults=True):
    """The form ``verbose_json``."""

    task: str
    language: str
    duration: float
    text: str
    usage: DurationUsage
    segments: Sequence[Segment] | None = None
    words: Sequence[SpokenWord] | None = None


class TranscriptTextDelta(
    msgspec.Struct, frozen=True, omit_defaults=True, tag="transcript.text.delta"
):
    """More of the text."""

    delta: str
    logprobs: Sequence[Logprob] | None = None


class TranscriptTextDone(
    msgspec.Struct, frozen=True, omit_defaults=True, tag="transcript.text.done"
):
    """The whole text: all deltas, joined."""

    text: str
    usage: Usage
    logprobs: Sequence[Logprob] | None = None


class TranscriptionRoutes:
    """The routes.

    Args:
        files: Reads what is sent.
    """

    def __init__(self, services: HttpServices, files: AudioFileDecoder) -> None:
        self._services = services
        self._files = files

    def routes(self) -> Sequence[Route]:
        """For the application."""
        return (
            self._route("transcriptions", "createTranscription", "Write down what is said."),
            self._route("translations", "createTranslation", "Write down in English what is said."),
        )

    def _route(self, name: str, operation: str, summary: str) -> Route:
        return Route(
            method="POST",
            path=f"/v1/audio/{name}",
            operation=operation,
            summary=summary,
            handle=self.transcribe if name == "transcriptions" else self.translate,
            body=(Content(FORM, TranscriptionForm, files=("file",)),),
            answers=(
                Content(JSON, TranscriptionAnswer | DetailedTranscription),
                *(Content(media) for media in (TEXT, SRT, VTT)),
                Content(EVENTS, TranscriptTextDelta | TranscriptTextDone),
            ),
            refusals=(400, 408, 413, 415, 500, 503, 504),
            timeout_s=self._services.settings.audio_timeout_s,
        )

    async def transcribe(self, request: web.Request) -> web.StreamResponse:
        """Write down what is said in a file.

        Raises:
            ClientError: The request cannot be carried out.
        """
        return await self._answer(request, translate=False)

    async def translate(self, request: web.Request) -> web.StreamResponse:
        """Write down in English what is said in a file.

        Raises:
            ClientError: The request cannot be carried out, or the model cannot translate.
        """
        return await self._answer(request, translate=True)

    async def _answer(self, request: web.Request, *, translate: bool) -> web.StreamResponse:
        form = await read_form(request, self._services.settings)
        asked = form_message(form, TranscriptionForm, _LISTS)
        task = self._task(form, asked, translate=translate)
        if asked.stream:
            return await task.send_events(request)
        return await task.answer()

    def _task(self, form: Form, asked: TranscriptionForm, *, translate: bool) -> _Task:
        model = self._services.catalogue.find(asked.model)
        pipeline = model.pipeline("transcription")
        _check(asked)
        if translate and not model.translates:
            spoken = ", ".join(model.languages) or "what is spoken"
            raise refused(
                f"the model {model.name} cannot translate; /v1/audio/transcriptions writes down: "
                f"{spoken}",
                "model",
                ErrorCode.UNSUPPORTED,
            )
        names = [asked.language] if asked.language else asked.languages
        options = ListenOptions(
            words=asked.response_format in ("srt", "vtt", "verbose_json") or bool(asked.include),
            language=chosen_language(names, model.languages),
            prompt=" ".join(each for each in (asked.prompt, ", ".join(asked.keywords)) if each),
            temperature=asked.temperature,
            translate=translate,
        )
        file = form.files.get("file")
        if file is None:
            others = ", ".join(shown(name) for name in [*form.files, *form.values][:10])
            raise refused(
                f"the form has no file in the field 'file'; it has: {others or 'nothing'}",
                "file",
                ErrorCode.MISSING_PARAMETER,
            )
        return _Task(self._services, self._files, pipeline, options, asked, file.data)


class _Task:
    """One file to be heard."""

    def __init__(
        self,
        services: HttpServices,
        files: AudioFileDecoder,
        pipeline: str,
        options: ListenOptions,
        asked: TranscriptionForm,
        data: bytes,
    ) -> None:
        self._services = services
        self._files = files
        self._options = options
        self._asked = asked
        self._data = data
        timeout_s = services.settings.request_timeout_s
        self._hearing = Hearing(services.engine, pipeline, options, timeout_s)

    async def answer(self) -> web.Response:
        """Hear everything, then answer."""
        async with aclosing(self._windows()) as heard:
            windows = [window async for window in heard]
        text = " ".join(window.text for window in windows)
        usage = DurationUsage(seconds=math.ceil(self._hearing.seconds))
        asked = self._asked
        match asked.response_format:
            case "text":
                return _text(f"{text}\n", TEXT)
            case "srt":
                return _text(as_srt(segments_of(windows, asked.temperature)), SRT)
            case "vtt":
                return _text(as_vtt(segments_of(windows, asked.temperature)), VTT)
            case "verbose_json":
                return json_answer(self._detailed(text, windows, usage))
            case _:
                logprobs = _logprobs(windows) if asked.include else None
                return json_answer(TranscriptionAnswer(text, usage, logprobs))

    async def send_events(self, request: web.Request) -> web.StreamResponse:
        """Send what is heard, as it is heard."""
        windows: list[HeardWindow] = []
        includes = bool(self._asked.include)
        keep_alive_s = self._services.settings.keep_alive_s
        async with event_stream(request, keep_alive_s) as events:
            async with aclosing(self._windows()) as heard:
                async for window in heard:
                    delta = f" {window.text}" if windows else window.text
                    windows.append(window)
                    logprobs = _logprobs([window]) if includes else None
                    await events.send(TranscriptTextDelta(delta, logprobs))
            text = " ".join(window.text for window in windows)
            usage = heard_usage(self._hearing.seconds, self._options.prompt, text)
            await events.send(
                TranscriptTextDone(text, usage, _logprobs(windows) if includes else None)
            )
        return events.response

    async def _windows(self) -> AsyncGenerator[HeardWindow, None]:
        async with self._files.open(self._data, WINDOW_RATE_HZ) as pieces:
            self._data = b""
            async with aclosing(self._hearing.windows(pieces)) as windows:
                async for window in windows:
                    yield window

    def _detailed(
        self, text: str, windows: Sequence[HeardWindow], usage: DurationUsage
    ) -> DetailedTranscription:
        asked = self._asked
        wanted = asked.timestamp_granularities or ["segment"]
        if "word" in wanted and any(not window.words for window in windows):
            raise refused(
                "the recogniser of this model cannot tell when words are said",
                "timestamp_granularities",
                ErrorCode.UNSUPPORTED,
            )
        segments = segments_of(windows, asked.temperature) if "segment" in wanted else None
        return DetailedTranscription(
            task="translate" if self._options.translate else "transcribe",
            language=language_name(self._options.language),
            duration=round(self._hearing.seconds, 3),
            text=text,
            usage=usage,
            segments=segments,
            words=spoken_words(windows) if "word" in wanted else None,
        )


def _check(asked: TranscriptionForm) -> None:
    """Refuse what no model can do.

    Raises:
        ProtocolError: There is something.
    """
    if asked.response_format == "diarized_json":
        raise refused(
            "who says what cannot be told here: diarized_json is not possible; "
            f"response_format may be {', '.join(FORMATS)}",
            "response_format",
            ErrorCode.UNSUPPORTED,
        )
    _check_name("response_format", asked.response_format, FORMATS)
    for name in asked.timestamp_granularities:
        _check_name("timestamp_granularities", name, GRANULARITIES)
    for name in asked.include:
        _check_name("include", name, ("logprobs",))
    if asked.timestamp_granularities and asked.response_format != "verbose_json":
        raise refused(
            "timestamp_granularities needs the response_format verbose_json, which is "
            f"{asked.response_format}",
            "timestamp_granularities",
        )
    if asked.include and asked.response_format != "json":
        raise refused(
            f"include needs the response_format json, which is {asked.response_format}", "include"
        )
    if asked.stream and asked.response_format not in ("json", "text"):
        raise refused(
            f"with stream, events come and no {asked.response_format}; leave one of them out",
            "stream",
        )
    if not 0 <= asked.temperature <= 1:
        raise refused(f"temperature is {asked.temperature:g}; it may be 0 to 1", "temperature")
    prompt_chars = len(asked.prompt) + sum(len(each) for each in asked.keywords)
    if prompt_chars > MAX_PROMPT_CHARS:
        raise refused(
            f"prompt and keywords have {prompt_chars} characters, the limit is {MAX_PROMPT_CHARS}",
            "prompt",
        )


def _check_name(param: str, name: str, known: Iterable[str]) -> None:
    if name not in known:
        raise refused(f"{param} is {shown(name)}; it may be {', '.join(known)}", param)


def _logprobs(windows: Iterable[HeardWindow]) -> list[Logprob]:
    return [
        Logprob(
            word.text, round(math.log(max(word.probability, 1e-9)), 4), list(word.text.encode())
        )
        for window in windows
        for word in window.words
    ]


def _text(text: str, content_type: str) -> web.Response:
    return web.Response(text=text, content_type=content_type, charset="utf-8")
