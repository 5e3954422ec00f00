"""Hours of life in minutes: ``python -m tests.soak --seconds 180``.

Rounds of random callers of all kinds against one server in a process of its own, whose models are
killed meanwhile. Between the rounds the server must be as it was: nothing held, no task and no file
more, no memory; each caller checks every sample that it hears. What is remembered by number is
filled before. An hour is ``--seconds 3600``.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import aiohttp

from duologue.engines.pipeline import StageSpec
from tests.faults.faulty_gateway import MARK, environment, write_pipeline
from tests.faults.server_process import ROOT, ServerProcess, server_process
from tests.soak.callers import LEAD_S, LIVES, Tally, listen_steadily
from tests.soak.filling import BRIEF, fill
from tests.soak.readings import Reading, complaints, memory_by_thirds, parse

CALLERS = 10
KILLED = ("asr", "llm", "tts")
MAX_DRIFT_S = 0.020
QUIET_S = 60.0
"""After a round the server must come to rest within so long."""

STEADY_LINE = "A steady answer, which goes on and on and never stops before it is over. " * 2
RUNNERS = {
    "asr": "tests.faults.scripted_models:RECOGNISER",
    "llm": "tests.faults.scripted_models:WRITER",
    "tts": "tests.soak.counting_voice:VOICE",
}


def a_config(folder: Path) -> dict[str, Any]:
    """One model of scripted stages that may be killed, and two that nobody touches."""
    return {
        "models": [
            {"name": "m", "plugin": "cascaded", "options": {"speech_credit_ms": 400}},
            {"name": "steady", "plugin": "scripted", "options": {"lines": [STEADY_LINE]}},
            {"name": BRIEF, "plugin": "scripted", "options": {"lines": ["Hm."]}},
        ],
        "engine": {
            "pipelines": ["scripted"],
            "pipeline_files": [str(_pipeline(folder, stage)) for stage in ("vad", *KILLED)],
            "restart_backoff_s": 0.05,
        },
        "gateway": {"port": 0, "drain_timeout_s": 5},
        "sessions": {
            "listening": {"end_of_turn": None, "echo_suppression": False},
            "send_lead_ms": int(LEAD_S * 1000),
            "disconnect_grace_s": 10,
        },
        "telemetry": {"log_level": "error"},
    }


def _pipeline(folder: Path, stage: str) -> Path:
    settings = {"stage": stage, "desk": str(folder / "desk"), "absent": str(folder / "absent")}
    spec = StageSpec(
        name=stage,
        runner="energy_vad" if stage == "vad" else f"soak_{stage}",
        max_jobs=64,
        env={"PYTHONPATH": f"{folder}:{ROOT}"},
        settings={} if stage == "vad" else settings,
    )
    return write_pipeline(folder, spec)


def install_models(folder: Path) -> None:
    """Make a package of the scripted models, as far as finding them is concerned."""
    metadata = folder / "soak_models-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: soak-models\nVersion: 1\n")
    lines = [f"soak_{stage} = {runner}" for stage, runner in RUNNERS.items()]
    (metadata / "entry_points.txt").write_text("\n".join(("[duologue.runners]", *lines, "")))


class Soak:
    """One server, and what was seen of it."""

    def __init__(self, server: ServerProcess, chance: random.Random) -> None:
        self.tally = Tally()
        self.readings: list[Reading] = []
        self.rounds = 0
        self._server = server
        self._chance = chance
        self._began = time.monotonic()

    async def run(self, seconds: float) -> None:
        """Let rounds follow each other; what is before the second one only warms up."""
        async with aiohttp.ClientSession() as client:
            await fill(self._server.port)
            self._began = time.monotonic()
            await self._round()
            await self._rest(client)
            self.readings.clear()
            while time.monotonic() - self._began < seconds or len(self.readings) < 3:
                await self._round()
                await self._rest(client)

    async def _round(self) -> None:
        self.rounds += 1
        port = self._server.port
        async with asyncio.TaskGroup() as group:
            group.create_task(listen_steadily(port, self._chance, self.tally))
            for _ in range(CALLERS):
                live = self._chance.choice(LIVES)
                group.create_task(live(port, self._chance, self.tally))
            for _ in range(self._chance.randrange(3)):
                await asyncio.sleep(self._chance.uniform(0.2, 2.0))
                self._kill(self._chance.choice(KILLED))

    def _kill(self, stage: str) -> None:
        mark = f"{MARK}={stage}".encode()
        for pid in self._server.processes():
            if mark in environment(pid):
                os.kill(pid, signal.SIGKILL)
                self.tally.counts[f"killed {stage}"] += 1

    async def _rest(self, client: aiohttp.ClientSession) -> None:
        async with asyncio.timeout(QUIET_S):
            for _ in itertools.count():
                if (await self._look(client)).is_quiet:
                    break
                await asyncio.sleep(0.2)
        # The last connections are yet to be closed, and a killed model to be started again.
        await asyncio.sleep(0.5)
        reading = await self._look(client)
        assert reading.is_quiet, reading
        self.readings.append(reading)
        _say(row_of(reading))

    async def _look(self, client: aiohttp.ClientSession) -> Reading:
        async with client.get(f"{self._server.url}/metrics") as answer:
            return Reading.of(parse(await answer.text()), time.monotonic() - self._began)


def row_of(reading: Reading) -> str:
    """One line of the table of quiet moments."""
    memory = f"{reading.memory_bytes / 1e6:.1f} MB"
    return f"{reading.at_s:7.0f}s {memory:>10} {reading.files:6.0f} {reading.tasks:6.0f}"


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


async def soak(seconds: float, seed: int) -> int:
    """Run it; returns the exit status."""
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        install_models(folder)
        async with server_process(folder, a_config(folder)) as server:
            run = Soak(server, chance)
            await run.run(seconds)
            server.kill(signal.SIGTERM)
            status = await server.ended()
            await server.nobody_is_left()
    wrong = complaints(run.readings)
    # What drifts, drifts in every answer; a machine that is busy elsewhere delays some of them.
    drift_s = sorted(run.tally.drifts_s)[len(run.tally.drifts_s) // 4]
    if drift_s > MAX_DRIFT_S:
        wrong.append(f"answers drift by {drift_s * 1000:.1f} ms against their playback")
    if status:
        wrong.append(f"the server ended with status {status}")
    _report(run, wrong, drift_s)
    return 1 if wrong else 0


def _report(run: Soak, wrong: Sequence[str], drift_s: float) -> None:
    for what, count in sorted(run.tally.counts.items()):
        _say(f"{count:10,} {what}")
    for complaint in wrong:
        _say(f"WRONG: {complaint}")
    first, last = run.readings[0], run.readings[-1]
    result = {
        "seconds": round(last.at_s),
        "rounds": run.rounds,
        "calls": run.tally.counts["calls"],
        "resumes": run.tally.counts["resumes"],
        "memory_mb": [round(each / 1e6, 1) for each in memory_by_thirds(run.readings)],
        "files": [first.files, last.files],
        "tasks": [first.tasks, last.tasks],
        "drift_ms": round(drift_s * 1000, 1),
        "worst_drift_ms": round(max(run.tally.drifts_s) * 1000, 1),
        "slowest_http_s": round(run.tally.slowest_http_s, 1),
        "silent_models": run.tally.counts["http 504"],
        "wrong": list(wrong),
    }
    _say(f"RESULT {json.dumps(result)}")


def main(arguments: Sequence[str]) -> int:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--seconds", type=float, default=180.0)
    parser.add_argument("--seed", type=int, default=None, help="of all that is random")
    args = parser.parse_args(arguments)
    seed = random.randrange(1 << 16) if args.seed is None else args.seed
    _say(f"seed {seed}")
    _say(f"{'at':>8} {'memory':>10} {'files':>6} {'tasks':>6}")
    return asyncio.run(soak(args.seconds, seed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
