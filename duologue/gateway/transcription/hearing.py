"""Audio into text, window by window, as the audio comes.

This module must not know where the audio comes from, nor who reads the text.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass

from duologue.core.errors import EngineError
from duologue.engines.payloads import (
    AudioChunk,
    DecodeSpeech,
    HeardDetails,
    HeardWord,
    ListenOptions,
    Transcript,
)
from duologue.gateway.route_requests import RouteRequests
from duologue.gateway.transcription.windows import WINDOW_RATE_HZ, Window, WindowCutter
from duologue.protocol.errors import ErrorCode, refused

WINDOW_S = 14.0
"""Within what a small recogniser takes at once."""

NOTHING_KNOWN = HeardDetails()


@dataclass(frozen=True, slots=True)
class HeardWindow:
    """What was said in one window.

    Units:
        Samples at ``WINDOW_RATE_HZ``, also those of the words, from the beginning of the audio.
    """

    text: str
    start_sample: int
    end_sample: int
    details: HeardDetails = NOTHING_KNOWN

    @property
    def words(self) -> tuple[HeardWord, ...]:
        """When each was said; empty where the recogniser cannot tell."""
        return self.details.words


class Hearing:
    """Hears one run of audio.

    Args:
        timeout_s: For one window.
    """

    def __init__(
        self, engine: RouteRequests, pipeline: str, options: ListenOptions, timeout_s: float
    ) -> None:
        self._engine = engine
        self._pipeline = pipeline
        self._options = options
        self._timeout_s = timeout_s
        self._cutter = WindowCutter(WINDOW_S)

    @property
    def seconds(self) -> float:
        """How much audio came in."""
        return self._cutter.samples / WINDOW_RATE_HZ

    async def windows(self, pieces: AsyncIterator[bytes]) -> AsyncGenerator[HeardWindow, None]:
        """Yield what is said, while the audio is read. Windows in which nothing is are left out.

        Args:
            pieces: s16le mono PCM at ``WINDOW_RATE_HZ``, whole samples.

        Raises:
            EngineError: The recogniser failed.
            ProtocolError: It cannot do what the options ask for.
        """
        async for pcm in pieces:
            for window in self._cutter.feed(pcm):
                if (heard := await self._heard(window)) is not None:
                    yield heard
        for window in self._cutter.finish():
            if (heard := await self._heard(window)) is not None:
                yield heard

    async def _heard(self, window: Window) -> HeardWindow | None:
        if window.is_silent:
            await asyncio.sleep(0)  # a long silence is cut in one go otherwise
            return None
        chunk = AudioChunk(window.pcm, WINDOW_RATE_HZ, window.start_sample)
        try:
            with self._engine.request(
                self._pipeline, chunk, more_input=True, timeout_s=self._timeout_s
            ) as outputs:
                outputs.append(DecodeSpeech("final", window.end_sample, self._options))
                outputs.finish()
                answers = [each async for each in outputs if isinstance(each, Transcript)]
        except EngineError as exc:
            if exc.code == ErrorCode.UNSUPPORTED:
                raise refused(
                    "the recogniser of this model cannot listen in the way that is asked for "
                    "(language, translation)",
                    None,
                    ErrorCode.UNSUPPORTED,
                ) from exc
            raise
        if not answers:
            raise EngineError("the recogniser gave no answer")
        answer = answers[-1]
        if not answer.text.strip():
            return None
        return HeardWindow(
            answer.text.strip(),
            window.start_sample,
            window.end_sample,
            answer.details or NOTHING_KNOWN,
        )
