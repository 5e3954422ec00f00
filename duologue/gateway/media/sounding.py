"""Sounds from the engine: several at once, each as one recording, and as a file.

This module must not know routes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import ExitStack

from duologue.codecs.containers import AudioFileEncoder, OutputFormat
from duologue.core.errors import EngineError
from duologue.engines.media_payloads import MakeSound, SoundData
from duologue.gateway.route_requests import Outputs, RouteRequests


async def sounds(
    engine: RouteRequests, pipeline: str, asks: Sequence[MakeSound]
) -> list[SoundData]:
    """Make sounds, asked for at once; whoever is cancelled meanwhile gives all of them up.

    Raises:
        CapacityError: There is no room for all of them.
        EngineError: They cannot be made.
    """
    with ExitStack() as leaving:
        outputs = [leaving.enter_context(engine.request(pipeline, ask)) for ask in asks]
        return [await _whole(each) for each in outputs]


async def _whole(outputs: Outputs) -> SoundData:
    runs = [payload async for payload in outputs if isinstance(payload, SoundData)]
    if not runs:
        raise EngineError("the pipeline gave no sound")
    first = runs[0]
    if len(runs) == 1:
        return first
    return SoundData(b"".join(run.pcm for run in runs), first.rate_hz, first.channels)


async def sound_file(sound: SoundData, audio_format: OutputFormat) -> bytes:
    """Return a sound as a file, made off the event loop.

    Raises:
        EngineError: It has more channels than files here have.
    """
    if sound.channels not in (1, 2):
        raise EngineError(f"a sound of {sound.channels} channels cannot be written; 1 or 2 can")
    return await asyncio.to_thread(_encoded, sound, audio_format)


def _encoded(sound: SoundData, audio_format: OutputFormat) -> bytes:
    encoder = AudioFileEncoder(audio_format, sound.rate_hz, len(sound.pcm), channels=sound.channels)
    return encoder.encode(sound.pcm) + encoder.finish()
