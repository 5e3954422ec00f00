"""One batch from its requests to its payloads: what runs in the thread that is sliced.

This module must not know the worker, nor when a slice ends.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias, TypeVar

import numpy as np
import torch
from PIL import Image

from duologue.codecs.films import FilmLimits, FilmReader
from duologue.core.errors import ClientError, EngineError
from duologue.engines.media_payloads import DrawImage, MakeVideo, StepsDone
from duologue.engines.payloads import Payload
from duologue.engines.runners.diffusion import preview, results
from duologue.engines.runners.diffusion.batching import LIMIT_EXCEEDED, Ask
from duologue.engines.runners.diffusion.calls import arguments, use_of
from duologue.engines.runners.diffusion.pipelines import Pipelines, takes
from duologue.engines.runners.diffusion.settings import DiffusionSettings
from duologue.engines.runners.diffusion.windows import Blender, Film, in_windows

T = TypeVar("T")

Point: TypeAlias = Callable[[], None]
"""Called where work can pause."""


class OffDevice(Protocol):
    """Does what keeps the host busy, and the device not if that is another one."""

    def __call__(self, work: Callable[[], T], /) -> T:
        """Do it."""
        ...


def at_once(work: Callable[[], T]) -> T:
    """Do it, and tell nobody."""
    return work()


Phase: TypeAlias = Literal["begins", "denoises", "ends"]
"""Reads words and makes the first step; makes the others; makes pictures of what came out."""

Tensors: TypeAlias = dict[str, Any]

_MAX_WINDOWS = 1_000


@dataclass(slots=True)
class Batch:
    """Requests that are made together.

    Args:
        asks: Of the same key (see ``batching``).
        outputs: Of each, not yet taken.
        phase: What it is at; parts of work are as long as others of the same phase.
        is_awaited: Somebody who looks on waits for what was put last.
    """

    asks: Sequence[Ask]
    outputs: list[list[Payload]] = field(default_factory=list)
    phase: Phase = "begins"
    is_awaited: bool = False

    def __post_init__(self) -> None:
        self.outputs = [[] for _ in self.asks]

    def put(self, number: int, payload: Payload) -> None:
        """Add an output of one request."""
        self.outputs[number].append(payload)

    def put_all(self, payload: Payload) -> None:
        """Add an output of all requests."""
        for each in self.outputs:
            each.append(payload)

    def take(self, number: int) -> list[Payload]:
        """Return the outputs of one request since the last time."""
        taken, self.outputs[number] = self.outputs[number], []
        self.is_awaited = False
        return taken


class BatchRun:
    """Makes a batch.

    Args:
        point: Called between denoising steps, and between pictures that are encoded.
        off_device: Is handed what encodes them.
    """

    def __init__(
        self,
        pipelines: Pipelines,
        settings: DiffusionSettings,
        batch: Batch,
        point: Point,
        off_device: OffDevice = at_once,
    ) -> None:
        self._pipelines = pipelines
        self._settings = settings
        self._batch = batch
        self._point = point
        self._off_device = off_device

    def run(self) -> None:
        """Make everything.

        Raises:
            EngineError: Something that is asked for cannot be done.
            Exception: What the library raises.
        """
        first = self._batch.asks[0]
        lora = None if not isinstance(first, DrawImage | MakeVideo) else first.lora
        self._pipelines.set_lora(None if lora is None else lora.name, lora.scale if lora else 1.0)
        match first:
            case DrawImage():
                self._draw()
            case MakeVideo(source=b""):
                self._film()
            case MakeVideo():
                self._film_anew(first)
            case _:
                self._sound()

    def _draw(self) -> None:
        pictures = self._call(self._batch.asks).images
        for number, ask in enumerate(self._batch.asks):
            assert isinstance(ask, DrawImage)
            self._put_image(number, ask, pictures[number])
            self._point()

    def _film(self) -> None:
        frames = self._call(self._batch.asks).frames
        for number, ask in enumerate(self._batch.asks):
            assert isinstance(ask, MakeVideo)
            _, height, width, _ = frames[number].shape
            film = results.Film(ask, width, height)
            self._put_film(number, film, frames[number])
            for payload in film.end():
                self._batch.put(number, payload)

    def _film_anew(self, ask: MakeVideo) -> None:
        """Make a video from a video: window by window, with the sound that it has."""
        try:
            reader = FilmReader(ask.source, self._film_limits())
            sound = reader.sound()
            film: results.Film | None = None
            blender = Blender(ask.overlap)
            pictures = (self._fitted(pixels, ask.width, ask.height) for pixels in reader.pictures())
            windows = _with_last(in_windows(pictures, ask.pictures, ask.overlap))
            for window, is_last in windows:
                made = self._window(ask, window)
                final = blender.add(made, is_last=is_last)
                if film is None:
                    samples, rate_hz = sound or (None, 0)
                    film = results.Film(ask, final.shape[2], final.shape[1], samples, rate_hz)
                self._put_film(0, film, final)
                self._point()
        except ClientError as exc:
            code = LIMIT_EXCEEDED if "limit" in exc.code else exc.code
            raise EngineError(exc.message, code=code) from exc
        if film is not None:
            for payload in film.end():
                self._batch.put(0, payload)

    def _window(self, ask: MakeVideo, window: Film) -> Film:
        """Work on one window; the last one is made as long as the others and cut again."""
        asked = [Image.fromarray(results.to_pixels(each)) for each in window]
        asked += asked[-1:] * (ask.pictures - len(window))
        made = self._call([ask], video=asked).frames[0]
        return np.asarray(made[: len(window)], np.float32)

    def _sound(self) -> None:
        pipe = self._pipelines.for_use("text")
        sounds = self._call(self._batch.asks).audios
        for number in range(len(self._batch.asks)):
            self._batch.put(number, results.sound(sounds[number], results.rate_of(pipe)))

    def _call(self, asks: Sequence[Ask], **more: Any) -> Any:
        pipe = self._pipelines.for_use(use_of(asks[0]))
        names = takes(pipe)
        call = arguments(asks, names, self._settings) | more
        if "callback_on_step_end" in names:
            call["callback_on_step_end"] = self._step_end
        elif "callback" in names:
            call["callback"] = lambda step, _time, _latents: self._after_step(
                step, self._batch.asks[0].steps
            )
            call["callback_steps"] = 1
        with self._computing():
            return pipe(**call)

    def _computing(self) -> AbstractContextManager[None]:
        """Have torch keep no account of tensors: a seventh of what the host has to do.

        Where projections are kept, it is the account that says whether nobody wrote into them.
        """
        kept = self._settings.projection_cache_bytes
        mode: AbstractContextManager[None] = torch.no_grad() if kept else torch.inference_mode()
        return mode

    def _step_end(
        self, pipe: Any, step: int, _time: Any, tensors: dict[str, Any]
    ) -> dict[str, Any]:
        total = int(getattr(pipe, "num_timesteps", 0) or self._batch.asks[0].steps)
        first = self._batch.asks[0]
        if isinstance(first, DrawImage) and first.partials:
            number = preview.shown_at(total, first.partials).get(step)
            if number is not None:
                self._show(pipe, tensors["latents"], number)
        self._after_step(step, total)
        return tensors

    def _show(self, pipe: Any, latents: torch.Tensor, number: int) -> None:
        first = self._batch.asks[0]
        assert isinstance(first, DrawImage)
        views = preview.decoded(pipe, latents, first.width, first.height)
        for index, ask in enumerate(self._batch.asks):
            assert isinstance(ask, DrawImage)
            self._put_image(index, ask, views[index], number)
        self._batch.is_awaited = True

    def _after_step(self, step: int, total: int) -> None:
        self._batch.put_all(StepsDone(step + 1, total))
        self._batch.phase = "denoises" if step + 1 < total else "ends"
        self._point()

    def _put_image(self, number: int, ask: DrawImage, picture: Any, partial: int = -1) -> None:
        self._batch.put(number, self._off_device(lambda: results.image(ask, picture, partial)))

    def _put_film(self, number: int, film: results.Film, frames: Any) -> None:
        parts = film.add(frames)
        while (payload := self._off_device(lambda: next(parts, None))) is not None:
            self._batch.put(number, payload)
            self._point()

    def _film_limits(self) -> FilmLimits:
        most = self._settings.max_total_pixels
        return FilmLimits(most, most * _MAX_WINDOWS, 1 << 20)

    @staticmethod
    def _fitted(pixels: Any, width: int, height: int) -> Any:
        picture = Image.fromarray(pixels)
        if picture.size != (width, height):
            picture = picture.resize((width, height), Image.Resampling.LANCZOS)
        return np.asarray(picture, np.float32) / 255


def _with_last(windows: Any) -> Any:
    """Yield each with whether it is the last one."""
    before = None
    for window in windows:
        if before is not None:
            yield before, False
        before = window
    if before is not None:
        yield before, True
