"""Lockstep models as a runner: the jobs of a worker, beside a thread that keeps the beat.

A job begins with ``LockstepStart``; then it takes ``AudioChunk``, ``LockstepRewind`` and
``LockstepFreeze`` and gives a ``LockstepFrame`` for every tick. The worker's own steps only carry
things to and from the loop: after each tick the loop wakes the worker once, for all jobs.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import structlog

from duologue.codecs.pcm import float_to_pcm, pcm_to_float
from duologue.core.audio import SAMPLE_BYTES
from duologue.core.clock import Clock, SystemClock
from duologue.core.errors import ConfigError, EngineError
from duologue.engines.arbiter.device_arbiter import IDLE, Beat
from duologue.engines.frame_counts import NO_FRAMES, FrameCounts
from duologue.engines.models.moshi_lm.sampling import taste_of
from duologue.engines.models.moshi_lm.tokenizer import TextStream, TextTokenizer
from duologue.engines.payloads import (
    AudioChunk,
    LockstepFrame,
    LockstepFreeze,
    LockstepNews,
    LockstepRewind,
    LockstepStart,
    LockstepTaste,
    Payload,
)
from duologue.engines.runners.contract import Job, Step
from duologue.engines.runners.registry import RunnerType, Wake
from duologue.engines.runners.streaming_lm.beginnings import Beginnings
from duologue.engines.runners.streaming_lm.engine import FrameEngine
from duologue.engines.runners.streaming_lm.loading import limits_for, load_network
from duologue.engines.runners.streaming_lm.prepared import Costs
from duologue.engines.runners.streaming_lm.settings import StreamingLmSettings
from duologue.engines.runners.streaming_lm.switch_interval import prompt_switches
from duologue.engines.runners.streaming_lm.tick_loop import (
    MAX_WAITING_FRAMES,
    DrawBy,
    Freeze,
    Hear,
    Join,
    Leave,
    Message,
    Outlet,
    Rewind,
    StreamNews,
    Taken,
    TickLoop,
)
from duologue.engines.runners.streaming_lm.ticks.frame_feed import FeedLimits
from duologue.engines.runners.streaming_lm.ticks.frame_groups import (
    GroupPlan,
    StepTiming,
    capacity,
    plan_groups,
)
from duologue.engines.worker_inbox import WorkerInbox

log = structlog.get_logger(__name__)

ENDS_WITHIN_S = 2.0
"""A loop without streams ends with its step; one that does not hangs, and is left."""


MAX_WAITING_BYTES = 256 * 1024
"""What may be on its way from a job to the loop, five seconds of audio or so. What does not fit
stays with the job, and counts against what the engine lets wait for it."""


@dataclass(eq=False, slots=True)
class _Stream:
    """What the worker knows of a job.

    Args:
        text: Makes words of tokens.
        sent_bytes: Of inputs that went to the loop; counted by the worker's thread alone.
        received_bytes: Of those that arrived there; counted by the loop's thread alone.
        told: The latest news that went out.
    """

    text: TextStream
    outlet: Outlet = field(default_factory=Outlet)
    started: bool = False
    sent_bytes: int = 0
    received_bytes: int = 0
    told: StreamNews | None = None

    @property
    def has_room(self) -> bool:
        """Another input may go to the loop."""
        return self.sent_bytes - self.received_bytes < MAX_WAITING_BYTES


@dataclass(frozen=True, slots=True)
class _Posted:
    """A message on its way to the loop, and what it weighs."""

    message: Message
    stream: _Stream
    size_bytes: int = 0


class StreamingLm:
    """The runner.

    Concurrency:
        The worker's thread calls it; the loop runs in a thread of its own as long as there are
        streams, and owns the engine meanwhile.
    """

    def __init__(
        self,
        engine: FrameEngine,
        beginnings: Beginnings,
        tokenizer: TextTokenizer,
        settings: StreamingLmSettings,
        wake: Wake,
        clock: Clock | None = None,
    ) -> None:
        self.max_batch = engine.limits.slots
        self._engine = engine
        self._beginnings = beginnings
        self._tokenizer = tokenizer
        self._settings = settings
        self._wake = wake
        self._clock = clock or SystemClock()
        self._feed = FeedLimits(frame_samples=engine.frame_samples, rate_hz=engine.rate_hz)
        self._inbox: WorkerInbox[_Posted] = WorkerInbox()
        self._loop: TickLoop | None = None
        self._groups: GroupPlan | None = None
        self._running = threading.Lock()
        self._is_running = False
        self._thread: threading.Thread | None = None
        self._started = 0
        """Streams that the loop knows of."""
        self._failed = False
        self.on_beat: Callable[[Beat], None] = lambda _beat: None
        self._captured = False

    def capture(self) -> None:
        """Make all steps; on a GPU, a graph of each."""

        def tell(done: int, total: int) -> None:
            log.info("model_warming_up", steps=done, of=total)

        self._engine.warm_up(tell)
        self._captured = True

    def warm_up(self) -> None:
        """Measure all steps, and decide how many calls are in time.

        Raises:
            ConfigError: Not even one is.
        """
        if not self._captured:
            self.capture()
        costs = self._engine.measure(self._clock.now, self._settings.mean_frames or None)
        plan = self._groups = self._plan(costs)
        log.info(
            "model_ready",
            sessions=self.holds,
            groups=plan.groups,
            step_ms=round(1000 * costs.of_frame(plan.rows), 1),
        )
        now = self._clock.now()
        self._loop = TickLoop(
            self._engine, plan, self._feed, costs, now, self._wake, lambda beat: self.on_beat(beat)
        )

    @property
    def holds(self) -> int:
        """As many as memory and the steps' time allow, measured when it was warmed up."""
        plan = self._groups
        return 0 if plan is None else min(plan.groups * plan.rows, self._engine.limits.slots)

    def counted(self) -> FrameCounts:
        """As of the last second, of all streams that there were."""
        return NO_FRAMES if self._loop is None else self._loop.counts

    def open(self, job: Job) -> None:
        """Wait for the job's first input."""
        job.state = _Stream(self._tokenizer.stream())

    def ready(self, job: Job) -> bool:
        """Tell whether something has come in, or is to go out."""
        stream: _Stream = job.state
        outlet = stream.outlet
        return bool(
            (job.inputs and stream.has_room)
            or outlet.spoken
            or outlet.error
            or outlet.news is not stream.told
            or (job.input_ended and not job.inputs)
            or self._failed
        )

    def step(self, jobs: Sequence[Job]) -> Sequence[Step]:
        """Carry inputs to the loop, and what it has made back."""
        if self._failed:
            raise RuntimeError("the loop of the model has ended; what it died of was printed")
        now = self._clock.now()
        posted: list[_Posted] = []
        steps = [self._carry(job, posted, now) for job in jobs]
        self._post(posted)
        return steps

    def close(self, job: Job) -> None:
        """Let the job's stream go; after the last one, wait until the loop has ended."""
        if not job.state.started:
            return
        self._started -= 1
        self._post([_Posted(Leave(job.id), job.state)])
        if not self._started and self._thread is not None:
            # Else the process may end in the midst of a step, which ends it with a crash.
            self._thread.join(ENDS_WITHIN_S)

    def sleep(self, level: int) -> None:
        """Let go of what the collector was told to leave alone. The loop ended with its streams."""
        self._loop = None
        gc.unfreeze()

    def wake(self) -> None:
        """It does not keep its weights, so another is built."""

    def _plan(self, costs: Costs) -> GroupPlan:
        margin_s = self._settings.host_margin_ms / 1000

        def cost(rows: int) -> float:
            return costs.of_frame(rows) + margin_s

        slots = self._engine.limits.slots
        timing = StepTiming(
            period_s=self._feed.period_s, message_s=self._settings.message_ms / 1000
        )
        if not self._engine.on_gpu:
            # For small models and tests: there, frames that are late are better than none.
            everybody = GroupPlan(1, slots, timing.longest_wait_s(1))
            return plan_groups(slots, cost, timing) or everybody
        most = capacity(cost, timing, slots)
        plan = plan_groups(most, cost, timing) if most else None
        if plan is None:
            raise ConfigError(
                f"one step takes {1000 * cost(1):.0f} ms, which is not in time for a frame every"
                f" {1000 * timing.period_s:.0f} ms. Use a faster device, or shorter messages"
                " (message_ms)."
            )
        return plan

    def _carry(self, job: Job, posted: list[_Posted], now: float) -> Step:
        stream: _Stream = job.state
        try:
            while job.inputs and stream.has_room:
                payload = job.inputs.popleft()
                size_bytes = payload.size_bytes()
                message = self._message(job.id, stream, payload, now)
                stream.sent_bytes += size_bytes
                posted.append(_Posted(message, stream, size_bytes))
        except EngineError as error:
            return Step(error=error)
        outputs: list[Payload] = []
        while stream.outlet.spoken:
            said = stream.outlet.spoken.popleft()
            frame = said.frame
            outputs.append(
                LockstepFrame(
                    number=frame.frame,
                    pcm=float_to_pcm(frame.pcm),
                    text=stream.text.read(frame.text),
                    token=frame.text,
                    codes=frame.said,
                    heard=frame.heard,
                    rewinds=said.rewinds,
                )
            )
        if (news := stream.outlet.news) is not None and news is not stream.told:
            stream.told = news
            outputs.append(LockstepNews(news.counts, news.sees_frames))
        if len(outputs) >= MAX_WAITING_FRAMES:
            posted.append(_Posted(Taken(job.id), stream))
        failure = stream.outlet.error
        done = job.input_ended and not job.inputs and failure is None
        return Step(outputs, done=done, error=failure)

    def _message(self, key: str, stream: _Stream, payload: Payload, now: float) -> Message:
        if isinstance(payload, LockstepStart) and not stream.started:
            opening = self._beginnings.opening(payload)
            past = self._beginnings.log(payload, opening)
            stream.started = True
            self._started += 1
            return Join(key, opening, stream.outlet, past)
        if not stream.started:
            raise EngineError(f"a stream begins with LockstepStart, not {type(payload).__name__}")
        match payload:
            case AudioChunk(pcm=pcm, rate_hz=rate_hz):
                if rate_hz != self._feed.rate_hz or len(pcm) % SAMPLE_BYTES:
                    raise EngineError(
                        f"{len(pcm)} bytes of audio at {rate_hz} Hz cannot be heard: it must be"
                        f" whole samples at {self._feed.rate_hz} Hz"
                    )
                return Hear(key, pcm_to_float(pcm), now)
            case LockstepRewind(frame=frame):
                return Rewind(key, frame)
            case LockstepTaste(temperature=temperature, top_k=top_k):
                return DrawBy(key, taste_of(temperature, top_k))
            case LockstepFreeze(frozen=frozen):
                return Freeze(key, frozen)
            case _:
                raise EngineError(f"a stream cannot take {type(payload).__name__}")

    def _post(self, posted: list[_Posted]) -> None:
        if not posted:
            return
        with self._running:
            self._inbox.put(posted)
            if not self._is_running:
                self._is_running = True
                self._thread = threading.Thread(target=self._keep_beat, name="ticks", daemon=True)
                self._thread.start()

    def _keep_beat(self) -> None:
        """Take what comes, and do what is due, until nobody is there any more."""
        loop = self._loop
        assert loop is not None, "the runner was not warmed up"
        stopped = False
        wait_s: float | None = 0.0
        try:
            with prompt_switches():
                while not stopped:
                    self._take(loop, self._inbox.take(wait_s))
                    due = loop.advance(self._clock.now(), self._clock.now)
                    wait_s = None if due is None else max(0.0, due - self._clock.now())
                    if not loop.members:
                        loop.tell_counts()
                        stopped = self._stops()
        finally:
            # What went wrong is printed by the thread; the worker must end of it.
            self.on_beat(IDLE)
            if not stopped:
                self._failed = True
                self._wake()

    def _take(self, loop: TickLoop, posted: list[_Posted]) -> None:
        had_no_room = False
        for each in posted:
            loop.take(each.message, self._clock.now())
            had_no_room |= not each.stream.has_room
            each.stream.received_bytes += each.size_bytes
        if had_no_room:
            self._wake()  # what stayed with its job may come now

    def _stops(self) -> bool:
        with self._running:
            if self._inbox.is_empty:
                self._is_running = False
            return not self._is_running


def _build(settings: StreamingLmSettings, wake: Wake) -> StreamingLm:
    network = load_network(settings)
    tokenizer = TextTokenizer(Path(settings.tokenizer), network.config)
    engine = FrameEngine(network, limits_for(settings, network))
    beginnings = Beginnings(
        network.config,
        tokenizer,
        Path(settings.voices) if settings.voices else None,
        settings.voice,
        network.device,
        network.dtype,
    )
    return StreamingLm(engine, beginnings, tokenizer, settings, wake)


STREAMING_LM = RunnerType(StreamingLmSettings, _build, wakes_itself=True, sleep_levels=(2,))
