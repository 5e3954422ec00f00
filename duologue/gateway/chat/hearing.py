"""Recordings in a chat request, as sound or as the words in them.

This module must not know what is done with either.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable

from duologue.codecs.containers import AudioFileDecoder
from duologue.core.audio import SAMPLE_BYTES
from duologue.core.errors import ClientError, EngineError, LimitExceeded
from duologue.engines.payloads import AudioChunk, DecodeSpeech, Transcript
from duologue.gateway.chat.prompt import PartIndex
from duologue.gateway.route_requests import RouteRequests

SPEECH_RATE_HZ = 16_000
MAX_SPEECH_S = 300
"""All recordings of one request; longer ones are for transcription."""


class Hearing:
    """Hears the recordings of one request after another.

    Args:
        files: Reads them.
    """

    def __init__(self, engine: RouteRequests, files: AudioFileDecoder) -> None:
        self._engine = engine
        self._files = files

    async def hear(
        self, recordings: Iterable[tuple[PartIndex, bytes]], pipeline: str
    ) -> dict[PartIndex, str]:
        """Return the words of each recording.

        Raises:
            ClientError: One cannot be read, or they are too long.
            EngineError: The recogniser failed.
        """
        words: dict[PartIndex, str] = {}
        async for part, pcm in self._each(recordings):
            words[part] = await self._words(pcm, pipeline)
        return words

    async def read(self, recordings: Iterable[tuple[PartIndex, bytes]]) -> dict[PartIndex, bytes]:
        """Return each recording as s16le mono at ``SPEECH_RATE_HZ``, for models that hear.

        Raises:
            ClientError: One cannot be read, or they are too long.
        """
        return {part: pcm async for part, pcm in self._each(recordings)}

    async def _each(
        self, recordings: Iterable[tuple[PartIndex, bytes]]
    ) -> AsyncIterator[tuple[PartIndex, bytes]]:
        samples = 0
        for part, data in recordings:
            param = f"messages[{part[0]}].content[{part[1]}].input_audio.data"
            pcm = bytearray()
            try:
                async with self._files.open(data, SPEECH_RATE_HZ) as pieces:
                    async for piece in pieces:
                        pcm += piece
                        samples += len(piece) // SAMPLE_BYTES
                        if samples > MAX_SPEECH_S * SPEECH_RATE_HZ:
                            raise LimitExceeded(
                                f"the recordings last more than {MAX_SPEECH_S} s together; "
                                "transcribe long ones with POST /v1/audio/transcriptions"
                            )
            except ClientError as exc:
                exc.param = param
                raise
            yield part, bytes(pcm)

    async def _words(self, pcm: bytes, pipeline: str) -> str:
        with self._engine.request(pipeline, more_input=True) as outputs:
            second = SPEECH_RATE_HZ * SAMPLE_BYTES
            for start in range(0, len(pcm), second):
                chunk = pcm[start : start + second]
                outputs.append(AudioChunk(chunk, SPEECH_RATE_HZ, start // SAMPLE_BYTES))
            outputs.append(DecodeSpeech("final", len(pcm) // SAMPLE_BYTES))
            outputs.finish()
            return await _final(outputs)


async def _final(outputs: AsyncIterator[object]) -> str:
    async for payload in outputs:
        if isinstance(payload, Transcript) and payload.kind == "final":
            return payload.text
    raise EngineError("the recogniser ended without a transcript")
