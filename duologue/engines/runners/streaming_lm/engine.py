"""The streams of one model on one device: let in, prefilled, stepped, taken back, let go.

It decides nothing about time: whoever owns the clock says which slots take part in a step, and when
there is time for a prefill. After ``warm_up`` nothing is allocated on the device.

Concurrency:
    Belongs to one thread.
"""

from __future__ import annotations

import gc
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import Tensor

from duologue.core.errors import CapacityError
from duologue.engines.models.moshi_lm.sampling import Taste
from duologue.engines.models.moshi_lm.token_grid import Frame, Row, rows
from duologue.engines.runners.streaming_lm.captured import Input
from duologue.engines.runners.streaming_lm.frame_step import FrameStep, Network
from duologue.engines.runners.streaming_lm.kept_beginnings import KeptBeginnings
from duologue.engines.runners.streaming_lm.opening import Opening
from duologue.engines.runners.streaming_lm.pages import CopyPage, PageLimits, Pages, Shortened
from duologue.engines.runners.streaming_lm.prepared import (
    Costs,
    PreparedFrames,
    PreparedPrefill,
    PreparedReset,
    Samples,
    mask,
    measure,
)
from duologue.engines.runners.streaming_lm.spoken_frame import SpokenFrame
from duologue.engines.runners.streaming_lm.token_log import TokenLog

RETRY_AFTER_S = 5.0
SEED_STEP = 0x9E3779B97F4A7C15
"""Added to a stream's seed when it is taken back, so that it does not draw the same once more."""


@dataclass(frozen=True, slots=True)
class EngineLimits:
    """Sizes, all of them fixed at the start.

    Args:
        slots: How many streams there may be.
        buckets: Numbers of rows that steps are made for, growing; the last one is the most.
        chunks: Numbers of positions that prefills are made for, growing.
        eight_bit_kv: Keep keys and values in 8 bits.
    """

    slots: int
    pages: PageLimits
    buckets: tuple[int, ...]
    chunks: tuple[int, ...] = (64, 256)
    eight_bit_kv: bool = False


@dataclass(eq=False, slots=True)
class _Stream:
    """One stream.

    Args:
        base: The position of its first frame.
        rows: Positions that have to be read before it goes on: tokens, or ``None`` for what
            ``opening.voice`` has there.
        last: The frame that they end with.
    """

    slot: int
    opening: Opening
    log: TokenLog
    base: int
    last: Frame
    rows: deque[Row | None] = field(default_factory=deque)
    live: bool = False
    times_taken_back: int = 0


class FrameEngine:
    """All streams of one model."""

    def __init__(self, network: Network, limits: EngineLimits) -> None:
        assert limits.buckets[-1] <= limits.slots, "no step has more rows than there are slots"
        self.limits = limits
        self.config = network.config
        self.frame_samples = network.codec.config.frame_samples
        self.rate_hz = network.codec.config.sample_rate_hz
        self.pages = Pages(limits.pages)
        kept = torch.float8_e4m3fn if limits.eight_bit_kv else network.dtype
        self._step = FrameStep(network, limits.slots, limits.pages, kept)
        self._table = Input(tuple(self._step.table.shape), torch.int32, network.device)
        self._step.table = self._table.tensor
        self._free = list(range(limits.slots - 1, -1, -1))
        self._streams: dict[int, _Stream] = {}
        self._waiting: deque[_Stream] = deque()
        self._frames: dict[int, PreparedFrames] = {}
        self._prefills: dict[int, PreparedPrefill] = {}
        self._reset: PreparedReset | None = None
        self._kept: KeptBeginnings | None = None
        self.shortened: list[Shortened] = []
        """Windows that had to become shorter since somebody last took note."""

    def warm_up(self, progress: Callable[[int, int], None] | None = None) -> None:
        """Make every step once, so that later ones allocate nothing.

        Args:
            progress: Is told how many steps were made, and of how many.
        """
        # The largest first: the memory of its graph serves all others.
        jobs = [(True, n) for n in reversed(self.limits.chunks)]
        jobs += [(False, n) for n in reversed(self.limits.buckets)]
        pool = torch.cuda.graph_pool_handle() if self.on_gpu else None
        for done, (is_prefill, count) in enumerate(jobs, 1):
            if is_prefill:
                self._prefills[count] = PreparedPrefill(self._step, count, pool)
            else:
                self._frames[count] = PreparedFrames(self._step, count, self.frame_samples, pool)
            if progress is not None:
                progress(done, len(jobs))
        self._reset = PreparedReset(self._step, pool)
        self._kept = KeptBeginnings(self._step, self.pages, self.limits.pages.prefixes, pool)
        if self.on_gpu:
            # What was loaded is never garbage, and to look through all of it takes longer than a
            # frame may be late.
            gc.collect()
            gc.freeze()

    def measure(self, clock: Callable[[], float], seen: int | None = None) -> Costs:
        """Time steps and prefills.

        Before the first stream: it writes noise where their keys and values will be.

        Args:
            seen: How many positions each row of a step sees; None: a whole window.
        """
        assert not self._streams, "there are streams already"
        seen = min(seen or self.config.window, self.config.window)
        return measure(
            self._step, self._table, self.limits.pages, self._frames, self._prefills, clock, seen
        )

    def open(self, opening: Opening, log: TokenLog | None = None) -> int:
        """Let a stream in; it takes part in steps once ``prefill`` has returned its slot.

        Args:
            log: What a stream that began so has gone through in another process. It is read
                again; the codec begins anew, which is a click.

        Raises:
            CapacityError: All slots are taken, or there is not memory enough.
        """
        if not self._free:
            raise CapacityError(
                f"all {self.limits.slots} places of this model are taken",
                retry_after_s=RETRY_AFTER_S,
            )
        slot = self._free[-1]
        there = self.pages.admit(slot, opening.positions, opening.name or None)
        self._free.pop()
        begun = TokenLog(self.config, opening.positions - 1, opening.prompt.last)
        stream = _Stream(slot, opening, begun, opening.positions, opening.prompt.last)
        given = opening.rows()
        if there == len(given) and not self._may_begin(stream):
            there -= 1  # what follows is drawn from the last position, so it is read again
            self.pages.truncate(slot, there)
        if opening.pinned:
            self.pages.pin(slot, opening.positions)
        stream.rows.extend(given[there:])
        self._enter(stream)
        if not stream.rows:
            self._waiting.rotate(1)  # what takes so little waits for nobody's reading
        if log is not None and log.end > stream.base:
            self._go_through(stream, log)
        return slot

    def _may_begin(self, stream: _Stream) -> bool:
        return self._kept is not None and self._kept.take(stream.opening.name, stream.slot)

    def _go_through(self, stream: _Stream, log: TokenLog) -> None:
        begin = max(stream.base, log.oldest + 1)
        if begin > stream.base:
            # Its prompt has left the window.
            stream.rows.clear()
            self.pages.truncate(stream.slot, 0)
            self.pages.skip(stream.slot, begin)
        frames = [log.frame(position) for position in range(begin, log.end)]
        stream.rows.extend(rows(self.config, frames, log.frame(begin - 1)))
        stream.last = frames[-1]
        stream.log = log.copy()

    def fork(self, slot: int, seed: int) -> int:
        """Let a stream begin with all that another one has lived through.

        Raises:
            CapacityError: All slots are taken.
        """
        source = self._streams[slot]
        assert source.live, "a stream that is being prefilled cannot be forked"
        if not self._free:
            raise CapacityError("all places of this model are taken", retry_after_s=RETRY_AFTER_S)
        target = self._free.pop()
        self.pages.fork(slot, target)
        stream = _Stream(target, source.opening, source.log.copy(), source.base, source.last)
        self._streams[target] = stream
        self._step.encoder.restore(target, self._step.encoder.snapshot(slot))
        self._step.decoder.restore(target, self._step.decoder.snapshot(slot))
        state = self._step.state
        state.draw_as(target, stream.opening.taste, seed)
        for tensor in (state.text, state.said, state.heard):
            tensor[target] = tensor[slot]
        self._write_table(target)
        stream.live = True
        return target

    def rewind(self, slot: int, frame: int) -> None:
        """Let a stream forget what it said from a frame on; what it heard meanwhile it hears again.

        It takes part in steps again once ``prefill`` has returned its slot. Where that frame is
        too long ago, or yet to come, or the stream is being prefilled, nothing changes.

        Args:
            frame: The first one that nobody heard.
        """
        stream = self._streams[slot]
        position = stream.base + frame
        oldest = max(stream.log.oldest, self.pages.kept_from(slot)) + 1
        if not stream.live or not oldest <= position < stream.log.end:
            return
        before = stream.log.frame(position - 1)
        config = self.config
        heard = [stream.log.frame(each).heard for each in range(position, stream.log.end)]
        frames = [Frame(config.text_padding, config.silence, each) for each in heard]
        stream.log.truncate(position)
        for each in frames:
            stream.log.append(np.array((each.text, *each.said, *each.heard), np.int32))
        self.pages.truncate(slot, position)
        stream.rows.extend(rows(config, frames, before))
        stream.last = frames[-1]
        stream.live = False
        stream.times_taken_back += 1
        self._draw(stream)
        self._waiting.append(stream)

    def draw_by(self, slot: int, taste: Taste) -> None:
        """Let a stream draw otherwise, from its next frame on."""
        stream = self._streams[slot]
        stream.opening = replace(stream.opening, taste=taste)
        self._draw(stream)

    def close(self, slot: int) -> None:
        """Let a stream go, whatever it is at."""
        stream = self._streams.pop(slot)
        if stream in self._waiting:
            self._waiting.remove(stream)
        self.pages.release(slot)
        self._free.append(slot)

    @property
    def on_gpu(self) -> bool:
        """Tell whether steps are graphs."""
        return bool(self._step.network.device.type == "cuda")

    @property
    def streams(self) -> int:
        """How many there are."""
        return len(self._streams)

    @property
    def waiting(self) -> int:
        """How many positions have to be read before all streams are live.

        A stream that has only to begin counts as one.
        """
        return sum(max(1, len(stream.rows)) for stream in self._waiting)

    @property
    def waiting_position(self) -> int:
        """How far the streams that wait will have read when they are live, at most."""
        ends = (self.pages.end(stream.slot) + len(stream.rows) for stream in self._waiting)
        return max(ends, default=0)

    def is_live(self, slot: int) -> bool:
        """Tell whether a slot may take part in steps."""
        stream = self._streams.get(slot)
        return stream is not None and stream.live

    def frames(self, slot: int) -> int:
        """Tell how many frames a stream has made."""
        stream = self._streams[slot]
        return stream.log.end - stream.base

    def log_of(self, slot: int) -> TokenLog:
        """Return what a stream said and heard; it goes on to be written."""
        return self._streams[slot].log

    def prefill(self, most: int | None = None) -> list[int]:
        """Read some of the positions that wait, and return the slots that are live now.

        Where all of a stream's beginning is there, nothing is read: it begins, and costs less.

        Args:
            most: How many positions at most; None: as many as one chunk has.
        """
        chunks = [n for n in self.limits.chunks if most is None or n <= most]
        if not self._waiting or not chunks:
            return []
        if not self._waiting[0].rows:
            assert self._kept is not None, "only what is kept is there"
            stream = self._waiting.popleft()
            self._kept.begin(stream.slot, stream.last)
            self._wait()
            stream.live = True
            return [stream.slot]
        count = min(self.waiting, chunks[-1])
        count = chunks[min(bisect_left(chunks, count), len(chunks) - 1)]
        job = self._prefills[count]
        job.is_given.values[:] = False
        mask(job.places, self.limits.slots)
        # Pages are taken for all of them before it is said what each one sees: who is the last to
        # need one may take it from another one.
        parts: list[tuple[_Stream, int, int]] = []
        row = 0
        for stream in self._waiting:
            taken = min(len(stream.rows), count - row, self.limits.pages.chunk)
            if taken:
                parts.append((stream, self.pages.end(stream.slot), taken))
                self._extend(stream.slot, taken)
            row += taken
        ended: list[tuple[_Stream, int]] = []
        row = 0
        for stream, begin, taken in parts:
            slot, voice = stream.slot, stream.opening.voice
            end = begin + taken
            places = [(slot, self.pages.first(slot, each), each) for each in range(begin, end)]
            tokens = [stream.rows.popleft() for _ in places]
            job.write(row, places, tokens, None if voice is None else voice[begin:end])
            row += taken
            if not stream.rows:
                self._waiting.remove(stream)
                ended.append((stream, row - 1))
        self._table.send()
        hidden = job.read()
        for stream, last in ended:
            self._begin(job, stream, last, hidden)
        # The host's side of the inputs is written to again by whatever comes next.
        self._wait()
        return [stream.slot for stream, _ in ended]

    def step(self, slots: Sequence[int], pcm: Sequence[Samples]) -> list[SpokenFrame]:
        """Let live slots hear a frame and say one; the others stay as they are.

        Shapes:
            pcm: for each slot [frame_samples] float32, from -1 to 1
        """
        buckets = self.limits.buckets
        job = self._frames[buckets[bisect_left(buckets, len(slots))]]
        count = len(slots)
        mask(job.places, self.limits.slots)
        places = []
        for slot in slots:
            self._extend(slot, 1)  # of all, before it is said what each one sees
        for row, slot in enumerate(slots):
            position = self.pages.end(slot) - 1
            places.append((slot, self.pages.first(slot, position), position))
            job.pcm.values[row] = pcm[row]
        job.places.values[:count] = places
        job.pcm.values[count:] = 0
        self._table.send()
        samples, tokens = job.run()
        # A copy, since the next step writes to the same memory.
        samples, numbers = samples[:count].copy(), tokens[:count].tolist()
        codebooks = self.config.codebooks
        spoken = []
        for row, slot in enumerate(slots):
            stream = self._streams[slot]
            frame = stream.log.end - stream.base
            stream.log.append(tokens[row])
            text, *codes = numbers[row]
            said, heard = tuple(codes[:codebooks]), tuple(codes[codebooks:])
            spoken.append(SpokenFrame(slot, frame, samples[row], text, said, heard))
        return spoken

    def _enter(self, stream: _Stream) -> None:
        slot = stream.slot
        self._streams[slot] = stream
        self._waiting.append(stream)
        assert self._reset is not None, "it was not warmed up"
        self._reset.run(slot)
        self._draw(stream)
        self._write_table(slot)

    def _draw(self, stream: _Stream) -> None:
        seed = stream.opening.seed + SEED_STEP * stream.times_taken_back
        self._step.state.draw_as(stream.slot, stream.opening.taste, seed)

    def _begin(self, job: PreparedPrefill, stream: _Stream, row: int, hidden: Tensor) -> None:
        end, opening = self.pages.end(stream.slot), stream.opening
        job.beginning.run(hidden, row, stream.slot, end - 1, stream.last)
        self._wait()
        stream.live = True
        if opening.name and end == opening.positions and self._kept is not None:
            self._kept.keep(opening.name, stream.slot, hidden[row])

    def _extend(self, slot: int, count: int) -> None:
        begin = self.pages.end(slot)
        first = self.pages.first(slot, begin)
        effects = self.pages.extend(slot, count)
        for effect in effects:
            match effect:
                case CopyPage(source, target):
                    self._step.copy_page(source, target)
                case Shortened(loser):
                    self.shortened.append(effect)
                    if self.pages.pinned(loser):
                        self._write_table(loser)  # what is pinned moves along with the window
        frames = self.limits.pages.page_frames
        if self.pages.pinned(slot) and self.pages.first(slot, begin) != first:
            self._write_table(slot)
            return
        if count == 1 and begin % frames and not effects:
            return
        for position in (begin, *range(begin - begin % frames + frames, begin + count, frames)):
            entry, page = self.pages.entry(slot, position)
            self._table.values[slot, entry] = page

    def _wait(self) -> None:
        if self.on_gpu:
            torch.cuda.current_stream().synchronize()

    def _write_table(self, slot: int) -> None:
        for entry, page in self.pages.table(slot).items():
            self._table.values[slot, entry] = page
