"""One utterance of a speech stream: from its first text to its last sound, or to its cancel.

This module must not know the connection: what it has to say is handed to two functions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Literal

from duologue.codecs.containers import OutputFormat
from duologue.core.audio import SAMPLE_BYTES, samples_to_ms
from duologue.core.errors import DuologueError
from duologue.gateway.catalogue import Catalogue
from duologue.gateway.http.services import HttpServices
from duologue.gateway.route_requests import Outputs
from duologue.gateway.speech.encoding import SpeechFile, speech_format
from duologue.gateway.speech.first_sound import FirstSound
from duologue.gateway.speech.speaking import CREDIT_MS, SPEECH_RATE_HZ, Mark, Speaking
from duologue.gateway.speech.voices import Manner, manner
from duologue.protocol.errors import error_body
from duologue.protocol.speech_stream import (
    AudioChunkEvent,
    AudioDone,
    AudioMarks,
    AudioStart,
    ConfigureSpeech,
    SpeechError,
    SpeechEvent,
    SpeechSettingsShown,
    SpokenMark,
)

SendEvent = Callable[[SpeechEvent], Awaitable[None]]
SendBytes = Callable[[bytes], Awaitable[None]]

Outcome = Literal["completed", "cancelled", "failed"]

_NOBODY = Manner("", "")
_NOTHING_ASKED = ConfigureSpeech()


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeechChoice:
    """What a client has chosen so far, and what it means.

    Args:
        asked: All its choices; ``None``: the default.
        how: The manner that they mean.
    """

    asked: ConfigureSpeech = _NOTHING_ASKED
    model: str = ""
    how: Manner = _NOBODY
    audio_format: OutputFormat = OutputFormat.PCM

    @property
    def speed(self) -> float:
        """As the client asked for it."""
        return 1.0 if self.asked.speed is None else self.asked.speed

    @property
    def in_text(self) -> bool:
        """Whether speech is sent in base64."""
        return self.asked.audio == "base64"

    def shown(self) -> SpeechSettingsShown:
        """Return what the client is told."""
        return SpeechSettingsShown(
            model=self.model,
            voice=self.how.voice,
            response_format=self.audio_format,
            speed=self.speed,
            audio=self.asked.audio or "binary",
            sample_rate=SPEECH_RATE_HZ,
        )


def chosen(
    catalogue: Catalogue, before: SpeechChoice, change: ConfigureSpeech | None = None
) -> SpeechChoice:
    """Return what is chosen after a change.

    Raises:
        ProtocolError: There is no such model, voice, speed or format. Nothing has changed.
    """
    asked = before.asked
    if change is not None:
        named = {
            name: value
            for name in change.__struct_fields__
            if (value := getattr(change, name)) is not None
        }
        kept = {name: getattr(asked, name) for name in asked.__struct_fields__}
        asked = ConfigureSpeech(**{**kept, **named})
    model = catalogue.find(asked.model, "speech")
    speed = 1.0 if asked.speed is None else asked.speed
    return replace(
        before,
        asked=asked,
        model=model.name,
        how=manner(model, asked.voice, speed, asked.instructions or ""),
        audio_format=speech_format(asked.response_format or OutputFormat.PCM),
    )


class Utterance:
    """Something to be said.

    Args:
        before: The one that is spoken first.

    Concurrency:
        Text and cancels come from the task that reads; ``speak`` runs in a task of its own.
    """

    def __init__(
        self,
        services: HttpServices,
        choice: SpeechChoice,
        number: int,
        before: Utterance | None = None,
    ) -> None:
        self.number = number
        self.has_all_text = False
        self._services = services
        self._choice = choice
        self._before = before
        self._texts: list[str] = []
        """Text that came before the voice was asked."""
        self._speaking: Speaking | None = None
        self._outputs: Outputs | None = None
        self._cancelled = False
        self._must_flush = False
        self._samples = 0
        """How much speech was sent."""
        self._over = asyncio.Event()
        self._first = FirstSound(services.metrics, services.clock, choice.how.pipeline)
        self.chars = 0

    def feed(self, text: str) -> None:
        """Add text."""
        self.chars += len(text)
        if self._speaking is None:
            self._texts.append(text)
        else:
            self._speaking.feed(text)

    def flush(self) -> None:
        """Say what has come, though a clause may not be complete."""
        self._must_flush = True
        if self._speaking is not None:
            self._speaking.flush()

    def finish(self) -> None:
        """No further text comes."""
        self.has_all_text = True
        if self._speaking is not None:
            self._speaking.finish()

    def cancel(self) -> None:
        """Be silent from now on."""
        self.has_all_text = True
        self._cancelled = True
        if self._outputs is not None:
            self._outputs.close()

    async def speak(self, send: SendEvent, send_bytes: SendBytes) -> None:
        """Say it, when it is its turn; ends with ``audio.done``.

        Raises:
            ConnectionError: The client has gone.
        """
        try:
            reason = await self._outcome(send, send_bytes)
            await send(
                AudioDone(
                    utterance=self.number,
                    reason=reason,
                    text_chars=self.chars,
                    audio_ms=samples_to_ms(self._samples, SPEECH_RATE_HZ),
                )
            )
        finally:
            # Nobody may wait for one that is over, whatever ended it.
            self._over.set()

    async def wait_over(self) -> None:
        """Wait until it has said its last word."""
        await self._over.wait()

    async def _outcome(self, send: SendEvent, send_bytes: SendBytes) -> Outcome:
        try:
            await self._say(send, send_bytes)
        except DuologueError as exc:
            if not self._cancelled:
                await self._turn()
                await send(SpeechError(error=error_body(exc)))
                return "failed"
        return "cancelled" if self._cancelled else "completed"

    async def _say(self, send: SendEvent, send_bytes: SendBytes) -> None:
        choice = self._choice
        with self._services.engine.request(
            choice.how.pipeline,
            more_input=True,
            credit=CREDIT_MS,
            timeout_s=self._services.settings.audio_timeout_s,
        ) as outputs:
            self._outputs = outputs
            self._begin(Speaking(outputs, choice.how))
            await self._turn()
            if self._cancelled:
                return
            await send(
                AudioStart(
                    utterance=self.number,
                    response_format=choice.audio_format,
                    sample_rate=SPEECH_RATE_HZ,
                )
            )
            await self._send_all(send, send_bytes)

    def _begin(self, speaking: Speaking) -> None:
        self._speaking = speaking
        for text in self._texts:
            speaking.feed(text)
        self._texts.clear()
        if self._must_flush:
            speaking.flush()
        if self.has_all_text:
            speaking.finish()

    async def _turn(self) -> None:
        """Wait until the one before is over."""
        if self._before is not None:
            await self._before.wait_over()
            self._before = None

    async def _send_all(self, send: SendEvent, send_bytes: SendBytes) -> None:
        speaking = self._speaking
        assert speaking is not None
        with closing(await SpeechFile.begin(self._choice.audio_format)) as file:
            async for piece in speaking.pieces():
                if piece.pcm:
                    data = await file.add(piece.pcm)
                    if not self._cancelled:
                        self._samples += len(piece.pcm) // SAMPLE_BYTES
                        self._first.note(piece.pcm)
                        await self._send_audio(data, send, send_bytes)
                if piece.marks and not self._cancelled:
                    marks = [_shown(mark) for mark in piece.marks]
                    await send(AudioMarks(utterance=self.number, marks=marks))
            if not self._cancelled:
                await self._send_audio(await file.end(), send, send_bytes)

    async def _send_audio(self, data: bytes, send: SendEvent, send_bytes: SendBytes) -> None:
        if not data:
            return
        if self._choice.in_text:
            await send(AudioChunkEvent(utterance=self.number, audio=data))
        else:
            await send_bytes(data)


def _shown(mark: Mark) -> SpokenMark:
    return SpokenMark(
        text_end=mark.text_end,
        audio_ms=samples_to_ms(mark.sample, SPEECH_RATE_HZ),
        kind="clause" if mark.ends_clause else "word",
    )
