"""Speech as a file, off the event loop where that is work.

This module must not know where the bytes go.
"""

from __future__ import annotations

import asyncio

from duologue.codecs.containers import AudioFileEncoder, OutputFormat
from duologue.core.audio import ms_to_samples, silence
from duologue.gateway.speech.speaking import SPEECH_RATE_HZ
from duologue.protocol.errors import refused, shown

NO_SPEECH = silence(ms_to_samples(100, SPEECH_RATE_HZ))
"""What is in a file in which nothing is said: players want something."""


class SpeechFile:
    """One file that is written while it is sent. To be made by ``begin``, and closed in the end."""

    def __init__(self, encoder: AudioFileEncoder) -> None:
        self._encoder = encoder
        self._is_empty = True

    @classmethod
    async def begin(cls, audio_format: OutputFormat, total_bytes: int | None = None) -> SpeechFile:
        """Begin a file.

        Args:
            total_bytes: Length of all PCM, where it is known.
        """
        # Codecs are loaded at the first time, which takes a while.
        return cls(
            await asyncio.to_thread(AudioFileEncoder, audio_format, SPEECH_RATE_HZ, total_bytes)
        )

    async def add(self, pcm: bytes) -> bytes:
        """Take s16le mono PCM; returns what can be sent now."""
        self._is_empty = self._is_empty and not pcm
        if self._encoder.compresses:
            return await asyncio.to_thread(self._encoder.encode, pcm)
        return self._encoder.encode(pcm)

    async def end(self) -> bytes:
        """Return the end of the file."""
        start = b""
        if self._is_empty:
            start = await self.add(NO_SPEECH)
        if self._encoder.compresses:
            return start + await asyncio.to_thread(self._encoder.finish)
        return start + self._encoder.finish()

    def close(self) -> None:
        """Let go of the codec: now, or when the thread that still encodes is done with it."""
        del self._encoder


def speech_format(name: str, param: str = "response_format") -> OutputFormat:
    """Return the format of this name.

    Raises:
        ProtocolError: There is none.
    """
    try:
        return OutputFormat(name)
    except ValueError:
        known = ", ".join(OutputFormat)
        raise refused(f"{param} is {shown(name)}; it may be {known}", param) from None
