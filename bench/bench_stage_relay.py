"""What large payloads between stages cost the server's process, which also holds the calls.

Images of 512 KiB to 4 MiB pass three stages, each in a process of its own, that hand on what they
get; every byte is compared at the end. Compared, interleaved: the slab and ZeroMQ, where the server
passes on where an image lies, and the sockets alone (`link`). Over ZeroMQ the stages read of each
other by TCP, as on other machines. CPU is that of the server's process, time that of the whole way.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import structlog
from report import Report, Row, print_table

sys.path.insert(0, str(Path(__file__).parents[1]))

from duologue.core.fence import Fence
from duologue.engines.media_payloads import ImageData
from duologue.engines.orchestrator.engine import Engine
from duologue.engines.pipeline import Pipeline, StageSpec
from duologue.engines.ports import Ended, EngineEvent, Outcome, Output, Request
from duologue.engines.settings import EngineSettings
from tests.fakes.copying_runner import installed

KIB = 1024
SIZES_KIB = (512, 1024, 4096)
WAYS = {"sockets": "link", "slab": "slab", "zeromq": "zeromq"}
"""``transport`` of each stage."""


BESIDE = ("slab", "zeromq")


class Arrival:
    """Waits for the image of one request."""

    def __init__(self, expected: bytes) -> None:
        self._expected = expected
        self.is_equal = False
        self.ended = asyncio.Event()

    def on_engine_event(self, event: EngineEvent) -> None:
        match event:
            case Output(payload=ImageData(data=data)):
                self.is_equal = data == self._expected
            case Ended(outcome=outcome):
                assert outcome is Outcome.COMPLETED, event
                self.ended.set()


async def send(engine: Engine, image: ImageData, name: str) -> tuple[float, float]:
    """Let an image pass; returns CPU seconds of this process, and seconds."""
    arrival = Arrival(image.data)
    cpu, begun = time.process_time(), time.perf_counter()
    engine.submit(Request(name, "stages", Fence("bench", name, 0), first=image), arrival)
    async with asyncio.timeout(60):
        await arrival.ended.wait()
    spent = time.process_time() - cpu, time.perf_counter() - begun
    assert arrival.is_equal, "not what was sent"
    return spent


async def measure(rounds: int, report: Report) -> None:
    with tempfile.TemporaryDirectory() as folder:
        env = dict(installed(Path(folder)))
        engines = {}
        for way, transport in WAYS.items():
            stages = tuple(
                StageSpec(name=name, runner="copying", env=env, transport=transport)
                for name in ("first", "second", "third")
            )
            pipelines = {"stages": Pipeline(name="stages", stages=stages)}
            engines[way] = Engine(pipelines, EngineSettings())
            await engines[way].start()
        for kib in SIZES_KIB:
            image = ImageData(os.urandom(kib * KIB), "png", 8, 8)
            for number in range(rounds + 1):
                for way, engine in engines.items():
                    cpu_s, time_s = await send(engine, image, f"{way} {kib} {number}")
                    if number:  # the first touches memory that nobody had
                        report.add(
                            {
                                "way": way,
                                "KiB": kib,
                                "round": number,
                                "server_cpu_ms": cpu_s * 1e3,
                                "time_ms": time_s * 1e3,
                            }
                        )
        for engine in engines.values():
            await engine.stop()


def median(rows: list[Row], way: str, kib: int, column: str) -> float:
    return statistics.median(row[column] for row in rows if (row["way"], row["KiB"]) == (way, kib))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=15)
    arguments = options.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(30))
    report = Report("bench_stage_relay", "images through three stages: slab, ZeroMQ, sockets")
    asyncio.run(measure(arguments.rounds, report))
    lines: list[Row] = []
    for kib in SIZES_KIB:
        line: Row = {"KiB": kib}
        for column in ("server_cpu_ms", "time_ms"):
            values = {way: median(report.rows, way, kib, column) for way in WAYS}
            line |= {f"{way} {column}": value for way, value in values.items()}
            for way in BESIDE:
                line[f"{way} ratio {column}"] = values["sockets"] / values[way]
        lines.append(line)
    print_table(lines)
    report.finish(
        {
            f"sockets_over_{way}_{column}": {
                f"{line['KiB']} KiB": round(line[f"{way} ratio {column}"], 2) for line in lines
            }
            for way in BESIDE
            for column in ("server_cpu_ms", "time_ms")
        }
    )


if __name__ == "__main__":
    main()
