"""The steps of each number of rows, made ready at the start, and what they cost.

Each has memory of its own for its inputs; their graphs share what they compute in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from duologue.engines.models.moshi_lm.token_grid import Frame, Row
from duologue.engines.runners.streaming_lm.captured import Captured, Input, Output
from duologue.engines.runners.streaming_lm.frame_step import PLACE, FrameStep
from duologue.engines.runners.streaming_lm.pages import PageLimits

Samples = npt.NDArray[np.float32]
TIMED_RUNS = 5


class PreparedFrames:
    """A step of one number of rows."""

    __slots__ = ("_run", "_samples", "_tokens", "pcm", "places")

    def __init__(self, step: FrameStep, count: int, samples: int, pool: object) -> None:
        device = step.network.device
        self.pcm = Input((count, samples), torch.float32, device)
        self.places = Input((count, PLACE), torch.int32, device)
        mask(self.places, step.slots)
        self._run = Captured(lambda: step.frame(self.pcm.tensor, self.places.tensor), device, pool)
        pcm, tokens = self._run()
        self._samples, self._tokens = Output(pcm), Output(tokens)

    def run(self) -> tuple[Samples, npt.NDArray[np.int32]]:
        """Make the step that was written to ``pcm`` and ``places``, and wait for it."""
        self.pcm.send()
        self.places.send()
        pcm, tokens = self._run()
        self._samples.fetch(pcm)
        self._tokens.fetch(tokens)
        if pcm.is_cuda:
            torch.cuda.current_stream().synchronize()
        return self._samples.values, self._tokens.values  # type: ignore[return-value]


class PreparedReset:
    """The codec's part of a new stream: some hundred small fills, as one piece of work."""

    __slots__ = ("_run", "_slot")

    def __init__(self, step: FrameStep, pool: object) -> None:
        device = step.network.device
        self._slot = torch.full((1,), step.slots, dtype=torch.int64, device=device)
        self._run = Captured(lambda: step.reset(self._slot), device, pool)

    def run(self, slot: int) -> None:
        """Let a slot have heard and said nothing."""
        self._slot.fill_(slot)
        self._run()


class PreparedBeginning:
    """The first draw of one stream, from what was read before it.

    Args:
        hidden: What was read; on a GPU it is found at this place each time.
    """

    __slots__ = ("_before", "_chosen", "_ends", "_hidden", "_run", "_step")

    def __init__(self, step: FrameStep, hidden: Tensor, pool: object) -> None:
        config, device = step.network.config, step.network.device
        self._step = step
        self._hidden = hidden
        self._chosen = Input((1,), torch.int64, device)
        self._ends = Input((1, PLACE), torch.int32, device)
        mask(self._ends, step.slots)
        self._before = Input((1, 2 * config.codebooks), torch.int32, device)
        self._run = Captured(self._choose, device, pool)

    def run(self, hidden: Tensor, row: int, slot: int, position: int, before: Frame) -> None:
        """Let a stream begin.

        Args:
            row: Of ``hidden``, that of the stream's last position.
            position: That one; ``before``: the frame that it ends.
        """
        self._hidden = hidden
        self._chosen.values[0] = row
        self._ends.values[0] = (slot, 0, position)
        self._before.values[0] = (*before.said, *before.heard)
        for each in (self._chosen, self._ends, self._before):
            each.send()
        self._run()

    def _choose(self) -> None:
        places = self._ends.tensor
        self._step.begin(self._hidden, self._chosen.tensor, places, self._before.tensor)


class PreparedPrefill:
    """A prefill of one number of positions, and the beginnings that follow it."""

    __slots__ = ("_read", "beginning", "given", "is_given", "places", "tokens")

    def __init__(self, step: FrameStep, count: int, pool: object) -> None:
        network, device = step.network, step.network.device
        self.tokens = Input((count, network.config.streams), torch.int32, device)
        self.places = Input((count, PLACE), torch.int32, device)
        mask(self.places, step.slots)
        self.given = torch.zeros(
            (count, network.config.dimension), dtype=network.dtype, device=device
        )
        self.is_given = Input((count,), torch.bool, device)
        self._read = Captured(
            lambda: step.prefill(
                self.tokens.tensor, self.given, self.is_given.tensor, self.places.tensor
            ),
            device,
            pool,
        )
        self.beginning = PreparedBeginning(step, self._read(), pool)

    def write(
        self,
        row: int,
        places: Sequence[tuple[int, int, int]],
        tokens: Sequence[Row | None],
        voice: Tensor | None,
    ) -> None:
        """Say what stands in the rows from one on.

        Shapes:
            tokens: of each; ``None``, which comes first if at all: as ``voice`` has it
            voice: [as many rows, D]
        """
        end = row + len(tokens)
        known = [each for each in tokens if each is not None]
        # One copy for all of a voice: at each one another thread may take the interpreter.
        begin = end - len(known)
        if voice is not None and begin > row:
            self.given[row:begin].copy_(voice[: begin - row])
            self.is_given.values[row:begin] = True
        if known:
            self.tokens.values[begin:end] = known
        self.places.values[row:end] = places

    def read(self) -> Tensor:
        """Read the positions that were written to the inputs."""
        for each in (self.tokens, self.places, self.is_given):
            each.send()
        return self._read()


@dataclass(frozen=True, slots=True)
class Costs:
    """Seconds, by the number of rows.

    Args:
        frames: Of a step, when its rows see as much as they do on average.
        prefills: Of a prefill and one beginning after it: at the beginning of a stream, and at
            the end of a whole window.
        window: How many positions that is.
    """

    frames: dict[int, float]
    prefills: dict[int, tuple[float, float]]
    window: int

    def of_frame(self, rows: int) -> float:
        """Return what a step of so many rows takes."""
        return max(cost for count, cost in self.frames.items() if count <= self._bucket(rows))

    def of_prefill(self, rows: int, position: int) -> float:
        """Return what a prefill of so many rows takes, the last of which is at a position."""
        soon, late = self.prefills[rows]
        return soon + max(0.0, late - soon) * min(1.0, position / self.window)

    def _bucket(self, rows: int) -> int:
        return min((count for count in self.frames if count >= rows), default=max(self.frames))


def measure(
    step: FrameStep,
    table: Input,
    limits: PageLimits,
    frames: Mapping[int, PreparedFrames],
    prefills: Mapping[int, PreparedPrefill],
    clock: Callable[[], float],
    seen: int,
) -> Costs:
    """Time what was prepared, as it is when the rows of a step see so many positions each.

    It writes noise to all pages, and leaves the table of ``step`` full of them.
    """
    _fill_with_noise(step.pool)
    numbers = np.random.default_rng(0)
    table.values[:-1] = numbers.integers(1, limits.pages + 1, table.values[:-1].shape)
    table.send()
    newest = limits.window - 1
    frame_costs, prefill_costs = {}, {}
    for count, job in frames.items():
        job.places.values[:, 0] = np.arange(count)
        job.places.values[:, 1:] = (newest - seen + 1, newest)
        frame_costs[count] = _time(clock, job.run)
    for count, prefill in prefills.items():

        def at(position: int, count: int = count, prefill: PreparedPrefill = prefill) -> float:
            last = np.arange(position - count + 1, position + 1)
            prefill.places.values[:] = 0
            prefill.places.values[:, 2] = np.maximum(0, last)
            return _time(clock, lambda: _whole(step, prefill))

        prefill_costs[count] = (at(count - 1), at(newest))
    return Costs(frame_costs, prefill_costs, limits.window)


def _whole(step: FrameStep, prefill: PreparedPrefill) -> None:
    hidden, config = prefill.read(), step.network.config
    nobody = Frame(config.text_padding, config.silence, config.silence)
    prefill.beginning.run(hidden, 0, step.slots, 0, nobody)
    wait(step)


def mask(places: Input, sink: int) -> None:
    """Let all rows belong to nobody."""
    places.values[:] = (sink, 0, -1)


def wait(step: FrameStep) -> None:
    """Wait for the device."""
    if step.network.device.type == "cuda":
        torch.cuda.current_stream().synchronize()


def _fill_with_noise(pool: Tensor) -> None:
    """Zeros would be read faster than what a call leaves there."""
    for layer in pool:
        for page in layer.split(64):
            page.copy_(torch.randn(page.shape, device=page.device))


def _time(clock: Callable[[], float], run: Callable[[], object]) -> float:
    took = []
    for _ in range(TIMED_RUNS):
        started = clock()
        run()
        took.append(clock() - started)
    return median(took)
