"""The beat of a lockstep model: at every tick of a group its streams hear a frame and say one.

Between ticks there is time to read prompts, in chunks that are done before the next tick. News of
streams comes as messages, in order; what they say goes to the outlet of each. This module must not
know threads or jobs of a worker; ``now`` is handed in.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from duologue.core.errors import CapacityError, EngineError
from duologue.engines.arbiter.device_arbiter import IDLE, Beat
from duologue.engines.frame_counts import NO_FRAMES, FrameCounts
from duologue.engines.models.moshi_lm.sampling import Taste
from duologue.engines.runners.streaming_lm.engine import FrameEngine
from duologue.engines.runners.streaming_lm.heard_audio import HeardAudio, Samples
from duologue.engines.runners.streaming_lm.opening import Opening
from duologue.engines.runners.streaming_lm.prepared import Costs
from duologue.engines.runners.streaming_lm.spoken_frame import SpokenFrame
from duologue.engines.runners.streaming_lm.ticks.frame_deadline import (
    LATE_S,
    FrameBatch,
    FrameDeadline,
)
from duologue.engines.runners.streaming_lm.ticks.frame_feed import FeedLimits
from duologue.engines.runners.streaming_lm.ticks.frame_groups import GroupPlan
from duologue.engines.runners.streaming_lm.token_log import TokenLog

SPARE_S = 0.002
"""How long before the next tick a prefill must be done, as far as its cost is known."""

STARVED_TICKS = 12
"""Where a device is so slow that no prefill ever fits, one is made after so many ticks all the
same: a frame that is late now and then is better than a call that never begins."""


TELL_EVERY_S = 1.0
"""How often it is told what was counted."""

MAX_WAITING_FRAMES = 32
"""Of what a stream has said, 2.6 s: where they are not taken, it is left out of the ticks, so that
it says nothing which nobody hears."""


@dataclass(eq=False, slots=True)
class Outlet:
    """What a stream has to say; filled by the loop, emptied by another thread.

    Who takes ``MAX_WAITING_FRAMES`` or more out of it at once has to say so, by ``Taken``.

    Args:
        news: The latest there are; replaced as a whole.
    """

    spoken: deque[Said] = field(default_factory=deque)
    error: EngineError | None = None
    news: StreamNews | None = None

    @property
    def is_full(self) -> bool:
        """No other frame fits in."""
        return len(self.spoken) >= MAX_WAITING_FRAMES


@dataclass(frozen=True, slots=True)
class Said:
    """One frame, and what its stream has gone through by then."""

    frame: SpokenFrame
    rewinds: int


@dataclass(frozen=True, slots=True)
class StreamNews:
    """What became of a stream so far.

    Args:
        sees_frames: How far back it sees, since that became less than its window; 0: it did not.
    """

    counts: FrameCounts
    sees_frames: int = 0


@dataclass(frozen=True, slots=True)
class Join:
    """Let a stream in.

    Args:
        log: What it has gone through elsewhere, to be gone through again.
    """

    key: str
    opening: Opening
    outlet: Outlet
    log: TokenLog | None = None


@dataclass(frozen=True, slots=True)
class Hear:
    """Audio of a stream.

    Args:
        samples: [n] float32 at the model's rate.
        at: When it came.
    """

    key: str
    samples: Samples
    at: float


@dataclass(frozen=True, slots=True)
class Rewind:
    """Take a stream back to before a frame."""

    key: str
    frame: int


@dataclass(frozen=True, slots=True)
class DrawBy:
    """Let a stream draw otherwise, from its next frame on."""

    key: str
    taste: Taste


@dataclass(frozen=True, slots=True)
class Freeze:
    """Leave a stream out of the ticks, or let it take part again."""

    key: str
    frozen: bool


@dataclass(frozen=True, slots=True)
class Taken:
    """What a stream has said was taken, after its outlet had been full."""

    key: str


@dataclass(frozen=True, slots=True)
class Leave:
    """Let a stream go."""

    key: str


Message = Join | Hear | Rewind | DrawBy | Freeze | Taken | Leave


@dataclass(eq=False, slots=True)
class _Member:
    """A stream as the loop sees it.

    Args:
        joined: It is known to the scheduler.
        frozen: As its owner wants it.
        masked: It takes no part in ticks: frozen, or being taken back, or its outlet is full.
        heard_at: When its latest message came, before it joined; ``message_s``: how long that was.
    """

    key: str
    slot: int
    outlet: Outlet
    joined: bool = False
    frozen: bool = False
    masked: bool = False
    rewinds: int = 0
    heard_at: float | None = None
    message_s: float = 0.0
    sees_frames: int = 0


class TickLoop:
    """The streams of one engine, and when they are stepped.

    Args:
        costs: How long prefills take.
        tell: Called after a tick that put something into outlets.
        on_beat: Told of each step that begins, and when the next one is.
    """

    def __init__(
        self,
        engine: FrameEngine,
        plan: GroupPlan,
        limits: FeedLimits,
        costs: Costs,
        start: float,
        tell: Callable[[], None],
        on_beat: Callable[[Beat], None] = lambda _beat: None,
    ) -> None:
        self._engine = engine
        self._scheduler = FrameDeadline(plan, limits, start)
        self._most = plan.groups * plan.rows
        self._costs = costs
        self._tell = tell
        self._on_beat = on_beat
        self._spacing_s = limits.period_s / plan.groups
        self._step_s = costs.of_frame(plan.rows)
        # Before another group's tick, and before the frames are late that have waited longest.
        in_time_s = min(self._spacing_s, LATE_S - plan.longest_wait_s)
        self._ends_within_s = max(self._step_s, in_time_s)
        capacity = limits.frame_samples + limits.debt_samples
        self._heard = HeardAudio(engine.limits.slots, capacity, limits.frame_samples)
        self._members: dict[str, _Member] = {}
        self._by_slot: dict[int, _Member] = {}
        self._starved = 0
        """Ticks since there was time for a prefill that waits."""
        self._rate_hz = limits.rate_hz
        self._told_at = start
        self.counts = NO_FRAMES
        """What became of all frames, as of the last time that it was told; replaced as a whole."""

    def take(self, message: Message, now: float) -> None:
        """Take note of something. News of a stream that has ended is no error."""
        if isinstance(message, Join):
            self._join(message)
            return
        member = self._members.get(message.key)
        if member is None:
            return
        match message:
            case Hear(samples=samples, at=at):
                if member.joined:
                    drop = self._scheduler.arrived(member.slot, len(samples), at)
                    if not member.masked:
                        self._heard.append(member.slot, samples, drop)
                else:
                    member.heard_at, member.message_s = at, len(samples) / self._rate_hz
            case Rewind(frame=frame):
                self._rewind(member, frame, now)
            case DrawBy(taste=taste):
                self._engine.draw_by(member.slot, taste)
            case Freeze(frozen=frozen):
                member.frozen = frozen
                self._mask(member, now)
            case Taken():
                self._mask(member, now)
            case Leave():
                self._leave(member)

    def advance(self, now: float, clock: Callable[[], float]) -> float | None:
        """Make one step or one prefill, if it is time for it.

        Args:
            clock: Tells when a step is done.

        Returns:
            When to call again: ``now`` for at once; None: when there is a message.
        """
        if self._starved >= STARVED_TICKS:
            self._read(self._engine.limits.chunks[0], clock)
            return now
        batch = self._scheduler.next_batch(now)
        if isinstance(batch, FrameBatch):
            self._on_beat(Beat(step_s=self._step_s, busy_until=now + self._step_s))
            self._step(batch, now)
            done = clock()
            self._scheduler.finished(batch, done)
            self._note_shortened()
            if done - self._told_at >= TELL_EVERY_S:
                self._told_at = done
                self.tell_counts()
            self._tell()
            self._starved = self._starved + 1 if self._engine.waiting else 0
            return now
        self._on_beat(self._next_beat(batch))
        if not self._engine.waiting:
            return batch
        chunk = self._affordable(None if batch is None else batch - now)
        if chunk is None:
            return batch
        self._read(chunk, clock)
        return now

    @property
    def members(self) -> int:
        """How many streams there are."""
        return len(self._members)

    def counters(self) -> FrameCounts:
        """Add up what happened to all frames."""
        return self._scheduler.totals()

    def tell_counts(self) -> None:
        """Let others see what has been counted."""
        self.counts = self.counters().now()
        for member in self._members.values():
            if member.joined:
                self._tell_news(member)

    def _tell_news(self, member: _Member) -> None:
        whole = self._engine.limits.pages.window - 1
        if member.sees_frames and self._engine.pages.seen(member.slot) >= whole:
            member.sees_frames = 0  # it has grown back
        counts = self._scheduler.counters(member.slot).now()
        member.outlet.news = StreamNews(counts, member.sees_frames)

    def _note_shortened(self) -> None:
        """Tell streams that remember less than they should."""
        shortened, self._engine.shortened = self._engine.shortened, []
        for each in shortened:
            member = self._by_slot.get(each.slot)
            if member is None or not member.joined:
                continue
            self._scheduler.counters(member.slot).shortened_windows += 1
            member.sees_frames = self._engine.pages.seen(member.slot)
            self._tell_news(member)

    def _read(self, chunk: int, clock: Callable[[], float]) -> None:
        self._starved = 0
        took_s = self._costs.of_prefill(chunk, self._engine.waiting_position)
        self._on_beat(Beat(step_s=self._step_s, busy_until=clock() + took_s))
        for slot in self._engine.prefill(chunk):
            self._go_live(self._by_slot[slot], clock())
        self._note_shortened()

    def _next_beat(self, due: float | None) -> Beat:
        """When the next step is, and when it must be done."""
        if due is None:
            return IDLE
        return Beat(due, due + self._ends_within_s, self._step_s)

    def _affordable(self, time_s: float | None) -> int | None:
        """Return the largest prefill that is done in time."""
        chunks = self._engine.limits.chunks
        if time_s is None:
            return chunks[-1]
        position = self._engine.waiting_position
        fitting = [n for n in chunks if self._costs.of_prefill(n, position) + SPARE_S <= time_s]
        return max(fitting, default=None)

    def _join(self, message: Join) -> None:
        try:
            if len(self._members) >= self._most:
                raise CapacityError(
                    f"this model holds {self._most} calls in time, and has as many",
                    retry_after_s=5.0,
                )
            slot = self._engine.open(message.opening, message.log)
        except CapacityError as error:
            message.outlet.error = EngineError(error.message, code=error.code)
            self._tell()
            return
        member = _Member(message.key, slot, message.outlet)
        self._members[message.key] = self._by_slot[slot] = member
        self._heard.clear(slot)

    def _go_live(self, member: _Member, now: float) -> None:
        if not member.joined:
            every_s = member.message_s or None
            self._scheduler.join(member.slot, now, member.heard_at, every_s)
            member.joined = True
        self._mask(member, now)

    def _mask(self, member: _Member, now: float) -> None:
        if not member.joined:
            return
        member.masked = (
            member.frozen or member.outlet.is_full or not self._engine.is_live(member.slot)
        )
        if member.masked:
            self._scheduler.freeze(member.slot)
        else:
            self._scheduler.thaw(member.slot, now)

    def _rewind(self, member: _Member, frame: int, now: float) -> None:
        member.rewinds += 1
        self._engine.rewind(member.slot, frame)
        self._mask(member, now)

    def _leave(self, member: _Member) -> None:
        del self._members[member.key], self._by_slot[member.slot]
        if member.joined:
            self._scheduler.leave(member.slot)
        self._engine.close(member.slot)

    def _step(self, batch: FrameBatch, now: float) -> None:
        slots = [cut.slot for cut in batch.cuts]
        pcm = [self._heard.take(cut) for cut in batch.cuts]
        for spoken in self._engine.step(slots, pcm):
            member = self._by_slot[spoken.slot]
            member.outlet.spoken.append(Said(spoken, member.rewinds))
            if member.outlet.is_full:
                self._mask(member, now)
