"""What it costs to hand audio to a worker and to get its judgement back.

N streams append 40 ms of 16 kHz audio (1,280 bytes) each, 25 times a second, to a detector that
only measures loudness; each chunk is answered by one small payload. Compared, interleaved: the
inline and the process executor, with all streams in step (one batch per 40 ms) and spread over
eight phases, as a gateway's streams are. The cost of the harness itself is measured with an
engine that answers at once, and subtracted. The detector's own cost is in the worker's figure,
and in the gateway's where the worker is a thread of it.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib
import process_tree
import structlog
import uvloop
from report import Report, Row

from duologue.core.clock import SystemClock
from duologue.core.fence import SESSION_LANE, Fence
from duologue.engines.orchestrator.engine import Engine
from duologue.engines.payloads import AudioChunk, Payload, VoiceActivity
from duologue.engines.pipeline import Pipeline, StageSpec
from duologue.engines.ports import EngineEvent, EnginePort, Output, Request, Subscriber
from duologue.engines.settings import EngineSettings

matplotlib.use("Agg")

from matplotlib import pyplot  # the backend is chosen first

RATE_HZ = 16_000
CHUNK_SAMPLES = 640
CHUNK_S = CHUNK_SAMPLES / RATE_HZ
PHASES = 8

clock = SystemClock()


class AtOnce:
    """An engine that answers in the call: what remains is the harness."""

    def __init__(self) -> None:
        self._subscribers: dict[str, tuple[Subscriber, Fence]] = {}

    def submit(self, request: Request, subscriber: Subscriber) -> None:
        self._subscribers[request.id] = (subscriber, request.fence)

    def append(self, request_id: str, payload: Payload) -> None:
        subscriber, fence = self._subscribers[request_id]
        subscriber.on_engine_event(Output(request_id, fence, VoiceActivity(0.0, 0)))


class Stream:
    """One person's audio and the answers to it."""

    def __init__(self, number: int, engine: EnginePort, chunks: int) -> None:
        self.id = f"stream{number}"
        self._engine = engine
        self._sample = 0
        self._pcm = os.urandom(2 * CHUNK_SAMPLES)
        self._sent_at: list[float] = []
        self.round_trips: list[float] = []
        self.expected = chunks
        self.all_answered = asyncio.Event()
        fence = Fence(self.id, SESSION_LANE, 0)
        engine.submit(Request(self.id, "vad", fence, more_input=True), self)

    def send(self) -> None:
        self._sent_at.append(clock.now())
        self._engine.append(self.id, AudioChunk(self._pcm, RATE_HZ, self._sample))
        self._sample += CHUNK_SAMPLES

    def on_engine_event(self, event: EngineEvent) -> None:
        if isinstance(event, Output):
            self.round_trips.append(clock.now() - self._sent_at[len(self.round_trips)])
            if len(self.round_trips) == self.expected:
                self.all_answered.set()


async def run_streams(
    engine: EnginePort, count: int, phases: int, seconds: float
) -> dict[str, float]:
    beats = int(seconds / CHUNK_S)
    sent = beats * count
    streams = [Stream(number, engine, beats) for number in range(count)]
    groups = [streams[phase::phases] for phase in range(phases)]
    me = os.getpid()
    ours, all_of_us = clock.cpu_time(), process_tree.cpu_s(me)
    start = clock.now()
    late = []
    for beat in range(beats * phases):
        due = start + beat * CHUNK_S / phases
        await asyncio.sleep(max(0.0, due - clock.now()))
        late.append(clock.now() - due)
        for stream in groups[beat % phases]:
            stream.send()
    async with asyncio.timeout(10):
        for stream in streams:
            await stream.all_answered.wait()
    ours_s = clock.cpu_time() - ours
    workers_s = process_tree.cpu_s(me) - all_of_us - ours_s
    trips = sorted(trip for stream in streams for trip in stream.round_trips)
    return {
        "frames": sent,
        "gateway_us": ours_s / sent * 1e6,
        "worker_us": max(0.0, workers_s) / sent * 1e6,
        "rtt_p50_ms": trips[len(trips) // 2] * 1e3,
        "rtt_p99_ms": trips[len(trips) * 99 // 100] * 1e3,
        "harness_late_p99_ms": sorted(late)[len(late) * 99 // 100] * 1e3,
    }


async def measure(style: str, count: int, phases: int, seconds: float) -> dict[str, float]:
    if style == "at_once":
        return await run_streams(AtOnce(), count, phases, seconds)  # type: ignore[arg-type]
    stage = StageSpec(
        name="vad",
        runner="energy_vad",
        executor=style,
        max_jobs=count,
        settings={"window_ms": 40},
    )
    engine = Engine({"vad": Pipeline(name="vad", stages=(stage,))}, EngineSettings())
    await engine.start()
    try:
        return await run_streams(engine, count, phases, seconds)
    finally:
        await engine.stop()


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--streams", type=int, default=200)
    options.add_argument("--seconds", type=float, default=3.0)
    options.add_argument("--rounds", type=int, default=3)
    arguments = options.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(30))
    report = Report(
        "bench_engine_handoff",
        "audio chunks to a detector and its answers back, inline and in a process, against none",
    )
    cases = [
        (style, phases) for style in ("at_once", "inline", "process") for phases in (1, PHASES)
    ]
    for turn in range(arguments.rounds):
        for style, phases in cases if turn % 2 == 0 else reversed(cases):
            figures = uvloop.run(measure(style, arguments.streams, phases, arguments.seconds))
            report.add({"style": style, "phases": phases, "round": turn, **figures})

    result: dict[str, float] = {"n": arguments.streams}
    costs: dict[str, tuple[float, float]] = {}
    print(
        f"{'':10} {'phases':>6} {'gateway us':>11} {'worker us':>10} {'rtt p50 ms':>11} {'p99':>7}"
    )
    for style, phases in cases:
        gateway, worker, p50, p99 = (
            median(report.rows, style, phases, column)
            for column in ("gateway_us", "worker_us", "rtt_p50_ms", "rtt_p99_ms")
        )
        if style != "at_once":
            gateway -= median(report.rows, "at_once", phases, "gateway_us")
            costs[f"{style}\n{phases} phase{'s' if phases > 1 else ''}"] = (gateway, worker)
            case = f"{style}_{phases}"
            result[f"{case}_gateway_us"] = round(gateway, 2)
            result[f"{case}_worker_us"] = round(worker, 2)
            result[f"{case}_rtt_p50_ms"] = round(p50, 3)
            result[f"{case}_rtt_p99_ms"] = round(p99, 3)
        print(f"{style:10} {phases:>6} {gateway:>11.2f} {worker:>10.2f} {p50:>11.2f} {p99:>7.2f}")
    draw(costs, report.picture)
    report.finish(result)


def median(rows: Sequence[Row], style: str, phases: int, column: str) -> float:
    return statistics.median(
        row[column] for row in rows if (row["style"], row["phases"]) == (style, phases)
    )


def draw(costs: Mapping[str, tuple[float, float]], path: Path) -> None:
    figure, axes = pyplot.subplots(figsize=(7, 4), layout="constrained")
    gateways = [gateway for gateway, _ in costs.values()]
    axes.bar(list(costs), gateways, label="gateway")
    axes.bar(list(costs), [worker for _, worker in costs.values()], bottom=gateways, label="worker")
    axes.set(title="CPU microseconds for one chunk of audio and its answer", ylim=(0, None))
    axes.grid(alpha=0.3, axis="y")
    axes.legend()
    figure.savefig(path, dpi=130)
    pyplot.close(figure)


if __name__ == "__main__":
    main()
