"""Images, videos and sounds without any model: a colour or tone for each seed, step by step.

For tests, and for looking at the way of a request. The same request gives the same bytes; faults
come where the prompt asks for them. This module must not know who tests with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import msgspec
import numpy as np

from duologue.codecs.fmp4.writer import Fmp4Writer
from duologue.codecs.pictures import Pixels, encode, probe
from duologue.core.errors import ClientError, EngineError, OutOfMemory
from duologue.engines.media_payloads import (
    DrawImage,
    ImageData,
    MakeSound,
    MakeVideo,
    SoundData,
    StepsDone,
    VideoData,
)
from duologue.engines.payloads import Payload
from duologue.engines.runners.apart import step_apart
from duologue.engines.runners.contract import Job, Step
from duologue.engines.runners.registry import RunnerType

SOUND_RATE_HZ = 16_000
_Ask: TypeAlias = DrawImage | MakeVideo | MakeSound


class SketchSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of ``sketch``.

    Args:
        with_sound: Videos have a tone.
        fails_at: A prompt that has this in it fails at its last step; ``no_memory_at`` likewise,
            for want of memory, and ``never_at`` never ends.
    """

    with_sound: bool = False
    fails_at: str = "fail"
    no_memory_at: str = "no memory"
    never_at: str = "never"


@dataclass(slots=True)
class _Progress:
    ask: _Ask
    done: int = 0
    partials: int = 0


class SketchRunner:
    """One step of a request in each of the worker's."""

    max_batch = 16

    def __init__(self, settings: SketchSettings) -> None:
        self._settings = settings

    def warm_up(self) -> None:
        """Nothing gets faster."""

    def open(self, job: Job) -> None:
        """Nothing is needed before the request is read."""

    def ready(self, job: Job) -> bool:
        """There is a request, or one that goes on."""
        progress: _Progress | None = job.state
        if progress is None:
            return bool(job.inputs)
        return not (progress.done and self._is_endless(progress.ask))

    def step(self, jobs: Sequence[Job]) -> Sequence[Step]:
        """Do one step of each."""
        return step_apart(self._step, jobs)

    def close(self, job: Job) -> None:
        """Forget the request."""
        job.state = None

    def _step(self, job: Job) -> Step:
        if job.state is None:
            ask = job.inputs.popleft()
            if not isinstance(ask, DrawImage | MakeVideo | MakeSound):
                return Step(error=EngineError(f"a sketch cannot be made of {type(ask).__name__}"))
            job.state = _Progress(ask)
        progress: _Progress = job.state
        ask = progress.ask
        progress.done += 1
        steps: list[Payload] = [StepsDone(progress.done, ask.steps)]
        if progress.done < ask.steps or self._is_endless(ask):
            return Step([*steps, *self._partial(progress)])
        if self._settings.no_memory_at in ask.prompt:
            return Step(error=OutOfMemory("a sketch had no memory"))
        if self._settings.fails_at in ask.prompt:
            return Step(error=EngineError("a sketch failed"))
        try:
            made = self._made(ask)
        except ClientError as exc:
            return Step(error=EngineError(exc.message, code=exc.code))
        return Step([*steps, *made], done=True)

    def _is_endless(self, ask: _Ask) -> bool:
        return self._settings.never_at in ask.prompt

    @staticmethod
    def _partial(progress: _Progress) -> list[Payload]:
        ask = progress.ask
        if not isinstance(ask, DrawImage) or progress.partials >= ask.partials:
            return []
        progress.partials += 1
        return [_image(ask, progress.partials - 1)]

    def _made(self, ask: _Ask) -> list[Payload]:
        match ask:
            case DrawImage():
                return [_image(ask)]
            case MakeVideo():
                return self._film(ask)
            case MakeSound():
                return [_sound(ask)]

    def _film(self, ask: MakeVideo) -> list[Payload]:
        rate_hz = SOUND_RATE_HZ if self._settings.with_sound else None
        writer = Fmp4Writer(ask.width, ask.height, ask.picture_rate, audio_rate_hz=rate_hz)
        made: list[Payload] = []
        for number in range(ask.pictures):
            picture = _colour(ask.width, ask.height, ask.seed + number)
            sound = None if rate_hz is None else _tone(rate_hz // ask.picture_rate, number)
            made.append(VideoData(writer.add([picture], sound), 1, writer.mime))
        if left := writer.end():
            made.append(VideoData(left, 0, writer.mime))
        return made


def _image(ask: DrawImage, partial: int = -1) -> ImageData:
    if ask.image:
        probe(ask.image)
    seed = ask.seed if partial < 0 else ask.seed + partial + 1
    data = encode(_colour(ask.width, ask.height, seed), ask.media, ask.quality)
    return ImageData(data, ask.media, ask.width, ask.height, partial)


def _sound(ask: MakeSound) -> SoundData:
    """Return a tone on the left and another one on the right; the seed says which."""
    at = np.arange(round(ask.seconds * SOUND_RATE_HZ)) / SOUND_RATE_HZ
    tones = [200.0 + ask.seed % 50 * 10, 1000.0 + ask.seed % 50 * 10]
    left_right = np.stack([8000 * np.sin(2 * np.pi * hz * at) for hz in tones], axis=1)
    return SoundData(np.rint(left_right).astype("<i2").tobytes(), SOUND_RATE_HZ, 2)


def _colour(width: int, height: int, seed: int) -> Pixels:
    colour = (seed * 37 % 256, seed * 59 % 256, seed * 83 % 256)
    return np.broadcast_to(np.array(colour, np.uint8), (height, width, 3))


def _tone(samples: int, number: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    at = np.arange(number * samples, (number + 1) * samples, dtype=np.float32) / SOUND_RATE_HZ
    return (0.2 * np.sin(2 * np.pi * 440 * at)).astype(np.float32)[None]


# One that wakes itself: a request that is not ready is not done, but may wait for ever.
SKETCH = RunnerType(
    SketchSettings,
    lambda values, _wake: SketchRunner(values),
    wakes_itself=True,
    sleep_levels=(2,),
)
