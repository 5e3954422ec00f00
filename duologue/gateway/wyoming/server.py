"""A Wyoming server: a TCP port where Home Assistant has texts spoken and recordings written down.

The protocol knows no keys: whoever reaches the port may use it. This module must not know how
events are written.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import msgspec
import numpy as np

from duologue.codecs.resample import StreamResampler
from duologue.core.errors import ConfigError, DuologueError, LimitExceeded, ProtocolError
from duologue.core.tasks import guard
from duologue.engines.payloads import ListenOptions
from duologue.gateway.admission import Admission
from duologue.gateway.http.services import HttpServices
from duologue.gateway.speech.speaking import SPEECH_RATE_HZ
from duologue.gateway.speech.utterance import SendEvent, SpeechChoice, Utterance, chosen
from duologue.gateway.transcription.hearing import Hearing
from duologue.gateway.transcription.languages import chosen_language
from duologue.gateway.transcription.windows import WINDOW_RATE_HZ
from duologue.gateway.wyoming.events import (
    MAX_LINE_BYTES,
    WyomingEvent,
    encode_event,
    read_event,
)
from duologue.gateway.wyoming.messages import (
    AskedSpeech,
    AskedText,
    AskedTranscript,
    AudioForm,
    Complaint,
    HeardText,
    info_of,
    typed,
)
from duologue.protocol.errors import ErrorCode, error_body
from duologue.protocol.speech_stream import (
    AudioDone,
    AudioStart,
    ConfigureSpeech,
    SpeechError,
    SpeechEvent,
)
from duologue.telemetry import get_logger

MAX_CONNECTIONS = 64
MAX_UTTERANCES = 4
"""Of one connection, that are not over."""

MAX_RECORDING_S = 300
"""Of one recording: a command, not a meeting."""

_CLOSE_S = 2.0

_SPOKEN = AudioForm(SPEECH_RATE_HZ, 2, 1)
_PIECE_BYTES = WINDOW_RATE_HZ * 2
_RATES = range(8000, 96_001, 25)


class WyomingServer:
    """The port.

    Args:
        port: 0 takes any free one.
    """

    def __init__(self, services: HttpServices, admission: Admission, host: str, port: int) -> None:
        self._services = services
        self._admission = admission
        self._host = host
        self._asked_port = port
        self._server: asyncio.Server | None = None
        self._peers: dict[asyncio.StreamWriter, asyncio.Task[None]] = {}
        self._log = get_logger("gateway")

    @property
    def port(self) -> int:
        """The one that was taken."""
        assert self._server is not None
        return int(self._server.sockets[0].getsockname()[1])

    async def start(self) -> None:
        """Listen.

        Raises:
            ConfigError: The port is not to be had.
        """
        try:
            self._server = await asyncio.start_server(
                self._serve, self._host, self._asked_port, limit=MAX_LINE_BYTES
            )
        except OSError as exc:
            raise ConfigError(
                f"cannot listen on {self._host}:{self._asked_port} for Wyoming: {exc.strerror}; "
                "choose another gateway.wyoming_port"
            ) from exc

    async def close(self) -> None:
        """Let go of everybody."""
        if self._server is None:
            return
        self._server.close()
        tasks = list(self._peers.values())
        for writer in list(self._peers):
            writer.transport.abort()
        if tasks:
            # What still listens to a recording ends with the engine.
            await asyncio.wait(tasks, timeout=_CLOSE_S)
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._peers[writer] = task
        try:
            if len(self._peers) <= MAX_CONNECTIONS:
                peer = _Peer(reader, writer, self._services, self._admission)
                await guard(peer.hold(), self._crashed)
        finally:
            writer.close()
            try:
                async with asyncio.timeout(_CLOSE_S):
                    await writer.wait_closed()
            except (ConnectionError, TimeoutError):
                writer.transport.abort()  # it takes nothing
            finally:
                del self._peers[writer]

    def _crashed(self, exc: Exception) -> None:
        self._log.error("wyoming_peer_crashed", exc_info=exc)


class _Peer:
    """One connection."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        services: HttpServices,
        admission: Admission,
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._services = services
        self._admission = admission
        self._group = asyncio.TaskGroup()
        self._waiting = 0
        """Utterances that are not over."""
        self._utterance: Utterance | None = None
        """The last one."""
        self._written: Utterance | None = None
        """The one whose text still comes."""
        self._recording: _Recording | None = None
        self._wanted = AskedTranscript()

    async def hold(self) -> None:
        """Do what is asked until the peer leaves."""
        try:
            async with self._group:
                try:
                    while (event := await read_event(self._reader)) is not None:
                        await self._answer(event)
                        # The next one may be here already, and a thousand more: others have a turn.
                        await asyncio.sleep(0)
                except ProtocolError as exc:
                    await self._complain(exc)  # and leave: what follows cannot be read
                if self._utterance is not None:
                    self._utterance.cancel()
        except* (ConnectionError, TimeoutError):
            pass  # it has gone

    async def _answer(self, event: WyomingEvent) -> None:
        try:
            await self._do(event)
        except DuologueError as exc:
            await self._complain(exc)

    async def _do(self, event: WyomingEvent) -> None:
        match event.type:
            case "describe":
                await self._send("info", info_of(self._services.catalogue))
            case "ping":
                await self._send("pong", typed(event, AskedText))
            case "transcribe":
                self._wanted = typed(event, AskedTranscript)
            case "audio-start":
                self._recording = _Recording(typed(event, AudioForm))
            case "audio-chunk" if self._recording is not None:
                self._recording.add(typed(event, AudioForm), event.payload)
            case "audio-stop" if self._recording is not None:
                recording, self._recording = self._recording, None
                await self._write_down(recording)
            # While text comes in pieces, all of it comes too, for servers that know no pieces.
            case "synthesize" if self._written is None:
                asked = typed(event, AskedSpeech)
                text = self._within_limit(asked.text)
                utterance = self._speak(asked, self._send_spoken)
                utterance.feed(text)
                utterance.finish()
            case "synthesize-start" if self._written is None:
                self._written = self._speak(typed(event, AskedSpeech), self._send_streamed)
            case "synthesize-chunk" if self._written is not None:
                self._written.feed(self._within_limit(typed(event, AskedText).text))
            case "synthesize-stop" if self._written is not None:
                self._written.finish()
                self._written = None
            case _:
                pass  # of this protocol's many services others are meant

    def _speak(self, asked: AskedSpeech, send: SendEvent) -> Utterance:
        self._admission.check_request()
        if self._waiting >= MAX_UTTERANCES:
            raise LimitExceeded(
                f"{MAX_UTTERANCES} texts wait to be spoken; wait for audio-stop",
                code=ErrorCode.RATE_LIMITED,
            )
        voice = None if asked.voice is None else asked.voice.name
        choice = chosen(self._services.catalogue, SpeechChoice(), ConfigureSpeech(voice=voice))
        utterance = Utterance(self._services, choice, 0, self._utterance)
        self._utterance = utterance
        self._waiting += 1
        self._group.create_task(self._spoken(utterance, send), name="utterance")
        return utterance

    async def _spoken(self, utterance: Utterance, send: SendEvent) -> None:
        try:
            await utterance.speak(send, self._send_sound)
        finally:
            self._waiting -= 1

    def _within_limit(self, text: str) -> str:
        limit = self._services.settings.max_speech_chars
        chars = len(text) + (0 if self._written is None else self._written.chars)
        if chars > limit:
            raise LimitExceeded(f"the text has {chars} characters, the limit is {limit}")
        return text

    async def _send_spoken(self, event: SpeechEvent) -> None:
        match event:
            case AudioStart():
                await self._send("audio-start", _SPOKEN)
            case AudioDone():
                await self._send("audio-stop")
            case SpeechError(error=error):
                await self._send("error", Complaint(error.message, error.code or ""))
            case _:
                pass  # marks have no place here

    async def _send_streamed(self, event: SpeechEvent) -> None:
        await self._send_spoken(event)
        if isinstance(event, AudioDone):
            await self._send("synthesize-stopped")

    async def _send_sound(self, data: bytes) -> None:
        await self._send("audio-chunk", _SPOKEN, data)

    async def _write_down(self, recording: _Recording) -> None:
        self._admission.check_request()
        model = self._services.catalogue.find(None)
        wanted = [self._wanted.language] if self._wanted.language else []
        options = ListenOptions(language=chosen_language(wanted, model.languages))
        timeout_s = self._services.settings.request_timeout_s
        hearing = Hearing(
            self._services.engine, model.pipeline("transcription"), options, timeout_s
        )
        heard = [window.text async for window in hearing.windows(recording.pieces())]
        await self._send("transcript", HeardText(" ".join(heard), options.language or None))

    async def _complain(self, exc: DuologueError) -> None:
        body = error_body(exc)
        await self._send("error", Complaint(body.message, body.code or ""))

    async def _send(
        self, type_: str, data: msgspec.Struct | None = None, payload: bytes = b""
    ) -> None:
        self._writer.write(encode_event(type_, data, payload))
        async with asyncio.timeout(self._services.settings.stall_limit_s):
            await self._writer.drain()


class _Recording:
    """Sound that comes in, as s16le mono PCM at ``WINDOW_RATE_HZ``."""

    def __init__(self, form: AudioForm) -> None:
        if form.width != 2 or not 1 <= form.channels <= 8 or form.rate not in _RATES:
            raise ProtocolError(
                f"sound with {form.width} bytes a sample, {form.channels} channels and {form.rate} "
                "Hz cannot be read: send 2 bytes, 1 to 8 channels, 8000 to 96000 Hz"
            )
        self._form = form
        self._resampler = StreamResampler(form.rate, WINDOW_RATE_HZ)
        self._pcm = bytearray()

    def add(self, form: AudioForm, sound: bytes) -> None:
        """Take more of it."""
        if form != self._form:
            raise ProtocolError("the form of the sound changed within a recording")
        if len(sound) % (2 * form.channels):
            raise ProtocolError("a chunk of sound ends within a sample")
        samples = np.frombuffer(sound, "<i2")
        if form.channels > 1:
            samples = samples.reshape(-1, form.channels).mean(axis=1).astype("<i2")
        self._pcm += self._resampler.process(samples.tobytes())
        if len(self._pcm) > MAX_RECORDING_S * WINDOW_RATE_HZ * 2:
            self._pcm.clear()
            raise LimitExceeded(f"the recording lasts longer than {MAX_RECORDING_S} s")

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield all of it."""
        for start in range(0, len(self._pcm), _PIECE_BYTES):
            yield bytes(self._pcm[start : start + _PIECE_BYTES])
        yield self._resampler.flush()
