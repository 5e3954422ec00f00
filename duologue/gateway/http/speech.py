"""``POST /v1/audio/speech`` and ``GET /v1/audio/voices``: text in, a file or events out.

What is sent begins with the first clause. This module must not know how a voice speaks.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, closing

import msgspec
from aiohttp import web

from duologue.codecs.containers import CONTENT_TYPES, OutputFormat
from duologue.gateway.errors import json_answer
from duologue.gateway.http.body import read_json
from duologue.gateway.http.routes import EVENTS, JSON, Content, Route
from duologue.gateway.http.services import HttpServices
from duologue.gateway.http.streamed import ByteStream, event_stream
from duologue.gateway.speech.encoding import NO_SPEECH, SpeechFile, speech_format
from duologue.gateway.speech.first_sound import FirstSound
from duologue.gateway.speech.speaking import CREDIT_MS, SPEECH_RATE_HZ, Speaking
from duologue.gateway.speech.usage import Usage, spoken_usage
from duologue.gateway.speech.voices import Manner, aliases, manner
from duologue.protocol.errors import ErrorCode, refused, shown


class VoiceId(msgspec.Struct, frozen=True):
    """A voice as an object."""

    id: str


class SpeechRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The body of ``POST /v1/audio/speech``. Unknown fields are ignored.

    Args:
        model: None: the default one.
        voice: None: the model's first one.
        instructions: How to speak, for models that can be told.
        stream_format: ``audio``: the file itself; ``sse``: events with pieces of it.
        stream: With false, the file is sent when it is complete, with its length.
    """

    input: str
    model: str | None = None
    voice: str | VoiceId | None = None
    instructions: str | None = None
    response_format: str = OutputFormat.MP3
    speed: float = 1.0
    stream_format: str = "audio"
    stream: bool | None = None


class SpeechAudioDelta(msgspec.Struct, frozen=True, tag="speech.audio.delta"):
    """A piece of the file, in base64."""

    audio: bytes


class SpeechAudioDone(msgspec.Struct, frozen=True, tag="speech.audio.done"):
    """The file is complete."""

    usage: Usage


class VoiceCard(msgspec.Struct, frozen=True):
    """One voice of one model.

    Args:
        aliases: Names of stock clients that mean this voice.
    """

    id: str
    model: str
    aliases: Sequence[str]
    object: str = "voice"


class VoiceList(msgspec.Struct, frozen=True):
    """All voices.

    Args:
        voices: Every name that the default model accepts.
    """

    data: Sequence[VoiceCard]
    voices: Sequence[str]
    object: str = "list"


_DECODER = msgspec.json.Decoder(SpeechRequest)


class SpeechRoutes:
    """The routes."""

    def __init__(self, services: HttpServices) -> None:
        self._services = services

    def routes(self) -> Sequence[Route]:
        """For the application."""
        return (
            Route(
                method="POST",
                path="/v1/audio/speech",
                operation="createSpeech",
                summary="Speak a text.",
                handle=self.speak,
                body=(
                    Content(
                        JSON,
                        SpeechRequest,
                        ({"model": "duologue", "input": "Hello there.", "voice": "alloy"},),
                    ),
                ),
                answers=(
                    *(Content(media) for media in CONTENT_TYPES.values()),
                    Content(EVENTS, SpeechAudioDelta | SpeechAudioDone),
                ),
                refusals=(400, 408, 413, 415, 500, 503, 504),
                timeout_s=self._services.settings.audio_timeout_s,
            ),
            Route(
                method="GET",
                path="/v1/audio/voices",
                operation="listVoices",
                summary="List the voices of all models.",
                handle=self.list_voices,
                answers=(Content(JSON, VoiceList),),
                is_work=False,
            ),
        )

    async def speak(self, request: web.Request) -> web.StreamResponse:
        """Speak a text.

        Raises:
            ProtocolError: The request cannot be carried out.
        """
        asked = await read_json(request, _DECODER, self._services.settings)
        audio_format = speech_format(asked.response_format)
        how = self._manner(asked)
        if asked.stream_format == "sse":
            return await self._send_events(request, asked.input, how, audio_format)
        if asked.stream_format != "audio":
            raise refused(
                f"stream_format is {shown(asked.stream_format)}; it may be audio or sse",
                "stream_format",
            )
        if asked.stream is False:
            return await self._send_whole(request, asked.input, how, audio_format)
        return await self._send_stream(request, asked.input, how, audio_format)

    async def list_voices(self, _request: web.Request) -> web.Response:
        """Answer with all voices."""
        models = [each for each in self._services.catalogue.models if each.can("speech")]
        cards = []
        for model in models:
            meant = aliases(model.voices)
            for voice in model.voices:
                names = [name for name, own in meant.items() if own == voice]
                cards.append(VoiceCard(voice, model.name, names))
        names = [*models[0].voices, *aliases(models[0].voices)] if models else []
        return json_answer(VoiceList(cards, names))

    def _manner(self, asked: SpeechRequest) -> Manner:
        limit = self._services.settings.max_speech_chars
        if not asked.input.strip():
            raise refused("input is empty: there is nothing to say", "input")
        if len(asked.input) > limit:
            raise refused(
                f"input has {len(asked.input)} characters, the limit is {limit}; "
                "send it in parts, or use /v1/audio/speech/stream",
                "input",
                ErrorCode.INVALID_VALUE,
            )
        voice = asked.voice.id if isinstance(asked.voice, VoiceId) else asked.voice
        model = self._services.catalogue.find(asked.model, "speech")
        return manner(model, voice, asked.speed, asked.instructions or "")

    async def _pcm(self, text: str, how: Manner) -> AsyncGenerator[bytes, None]:
        """Yield the speech."""
        services = self._services
        first = FirstSound(services.metrics, services.clock, how.pipeline)
        with services.engine.request(
            how.pipeline,
            more_input=True,
            credit=CREDIT_MS,
            timeout_s=self._services.settings.audio_timeout_s,
        ) as outputs:
            speaking = Speaking(outputs, how)
            speaking.feed(text)
            speaking.finish()
            async for piece in speaking.pieces():
                if piece.pcm:
                    first.note(piece.pcm)
                    yield piece.pcm

    async def _send_stream(
        self, request: web.Request, text: str, how: Manner, audio_format: OutputFormat
    ) -> web.StreamResponse:
        stream = ByteStream(request, CONTENT_TYPES[audio_format])
        with closing(await SpeechFile.begin(audio_format)) as file:
            async with aclosing(self._pcm(text, how)) as speech:
                async for pcm in speech:
                    if data := await file.add(pcm):
                        await stream.write(data)
            if data := await file.end():
                await stream.write(data)
            return await stream.end()

    async def _send_whole(
        self, request: web.Request, text: str, how: Manner, audio_format: OutputFormat
    ) -> web.StreamResponse:
        # Twenty minutes are 57 MB, so they are there once and leave piece by piece.
        pieces: deque[bytes] = deque()
        async with aclosing(self._pcm(text, how)) as speech:
            pieces.extend([piece async for piece in speech])
        if not pieces:
            pieces.append(NO_SPEECH)
        with closing(await SpeechFile.begin(audio_format, sum(map(len, pieces)))) as file:
            for _ in range(len(pieces)):
                pieces.append(await file.add(pieces.popleft()))
            pieces.append(await file.end())
            stream = ByteStream(request, CONTENT_TYPES[audio_format], sum(map(len, pieces)))
            while pieces:
                if data := pieces.popleft():
                    await stream.write(data)
            return await stream.end()

    async def _send_events(
        self, request: web.Request, text: str, how: Manner, audio_format: OutputFormat
    ) -> web.StreamResponse:
        with closing(await SpeechFile.begin(audio_format)) as file:
            made = 0
            async with event_stream(request, self._services.settings.keep_alive_s) as events:
                async with aclosing(self._pcm(text, how)) as speech:
                    async for pcm in speech:
                        made += len(pcm)
                        if data := await file.add(pcm):
                            await events.send(SpeechAudioDelta(data), "speech.audio.delta")
                if data := await file.end():
                    await events.send(SpeechAudioDelta(data), "speech.audio.delta")
                usage = spoken_usage(text, made / (2 * SPEECH_RATE_HZ))
                await events.send(SpeechAudioDone(usage), "speech.audio.done")
            return events.response
