"""Voice beside pictures: what does a flood of image and video requests do to calls?

One server holds 20 calls whose model costs no CPU, as one on a GPU does not (each 40 ms frame is
answered at once by the echo), and 2 calls with the embedded models, while 4 images and 2 videos are
always being asked for, made by tiny diffusers pipelines in workers of their own. The same calls
without that flood stand against it; both run in each round, and who goes first turns round. A frame
that is answered after more than 80 ms, the frame of a lockstep model, is late.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
from loadgen import Load, LoadFailed, run_load
from priority import add_urgent_option, check_urgent
from report import Report, print_table
from servers import Running, duologue, running

REPOSITORY = Path(__file__).resolve().parents[1]
CALLS = 20
EMBEDDED_CALLS = 2
IMAGES, VIDEOS = 4, 2
PIPELINE = """
name: {name}
outputs: image
offer: {{serves: [{serves}], width: {side}, height: {side}, steps: {steps}, pictures: 9}}
stages:
  - name: diffusion
    runner: diffusion
    interpreter: {python}
    work_class: batch
    max_jobs: 8
    queue: 64
    env: {{OMP_NUM_THREADS: "1", OMP_WAIT_POLICY: PASSIVE, GOMP_SPINCOUNT: "0"}}
    settings: {{folder: {folder}, threads: 1, call: {{max_sequence_length: 32}}}}
"""

CONFIG = """
models:
  - {{name: duologue, plugin: cascaded}}
  - {{name: echo, plugin: echo}}
engine: {{pipeline_files: [{files}]}}
jobs: {{folder: {jobs}}}
gateway: {{http: {{max_requests: 256}}}}
"""


def written(folder: Path, python: str) -> Path:
    """Make the tiny pipelines and the configuration; returns that of the server."""
    command = [python, "-m", "tests.fakes.tiny_diffusers", "sd3", "wan", str(folder)]
    subprocess.run(command, cwd=REPOSITORY, check=True, capture_output=True)
    files = []
    for name, serves, side, steps in (("sd3", "images", 256, 8), ("wan", "videos", 64, 8)):
        path = folder / f"{name}.yaml"
        text = PIPELINE.format(
            name=name, serves=serves, side=side, steps=steps, python=python, folder=folder / name
        )
        path.write_text(text)
        files.append(str(path))
    config = folder / "duologue.yaml"
    config.write_text(CONFIG.format(files=", ".join(files), jobs=folder / "jobs"))
    return config


class Flood:
    """Asks for images and videos without a pause, in a process of its own."""

    def __init__(self, port: int) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__, "--flood", str(port)], stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        self._process.stdout.readline()  # the first of each has been made

    def stop(self) -> dict[str, int]:
        """End it; returns how many images and videos were made."""
        self._process.send_signal(signal.SIGTERM)
        out, _ = self._process.communicate()
        return dict(json.loads(out.splitlines()[-1]))


async def flood(port: int) -> None:
    made = {"images": 0, "videos": 0, "refused": 0}
    over = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, over.set)
    first = asyncio.Event()
    async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as http:

        async def ask(kind: str, path: str) -> None:
            while True:
                async with http.post(
                    path, json={"prompt": f"a cat, number {made[kind]}"}
                ) as answer:
                    await answer.read()
                    made[kind if answer.status == 200 else "refused"] += 1
                if made["images"] and made["videos"]:
                    first.set()

        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(ask("images", "/v1/images/generations")) for _ in range(IMAGES)
            ]
            tasks += [group.create_task(ask("videos", "/v1/videos/sync")) for _ in range(VIDEOS)]
            await first.wait()
            print("flowing", flush=True)
            await over.wait()
            for task in tasks:
                task.cancel()
    print(json.dumps(made), flush=True)


@contextmanager
def embedded_calls(server: Running, seconds: int) -> Iterator[dict[str, Any]]:
    """Hold the embedded calls meanwhile; what they met with is there at the end."""
    found: dict[str, Any] = {}
    command = [
        *[
            sys.executable,
            "-m",
            "duologue",
            "loadtest",
            f"ws://127.0.0.1:{server.port}/v1/realtime",
        ],
        *["--sessions", str(EMBEDDED_CALLS), "--seconds", str(seconds), "--model", "duologue"],
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def read() -> None:
        out, _ = process.communicate()
        for line in out.splitlines():
            word, _, rest = line.partition(" ")
            if word in ("gaps", "answers", "wait"):
                found[word] = rest.strip()

    reader = threading.Thread(target=read)
    reader.start()
    try:
        yield found
    finally:
        reader.join()


def measured(server: Running, seconds: int, *, with_flood: bool, urgent: bool) -> dict[str, Any]:
    """Hold the calls once; returns a row."""
    others = Flood(server.port) if with_flood else None
    try:
        load = Load(CALLS, seconds=seconds, warm_seconds=2)
        target = replace(server.server.target, path="/v1/realtime?model=echo")
        with embedded_calls(server, seconds + 3) as embedded:
            figures = run_load(server.port, target, load, lambda _mark: None, urgent=urgent)
    finally:
        made = {} if others is None else others.stop()
    latency = figures["latency_us"]
    return {
        "flood": with_flood,
        "p50_ms": latency["p50"] / 1000,
        "p99_ms": latency["p99"] / 1000,
        "max_ms": latency["max"] / 1000,
        "frames": latency["n"],
        "late": figures["late"],
        "lost": figures["lost"],
        "embedded_gaps": embedded.get("gaps", ""),
        "load": os.getloadavg()[0],
        **made,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--python", default=str(REPOSITORY / ".venv-diffusion/bin/python"))
    parser.add_argument("--flood", type=int, metavar="PORT", help=argparse.SUPPRESS)
    add_urgent_option(parser)
    args = parser.parse_args()
    if args.flood is not None:
        asyncio.run(flood(args.flood))
        return
    check_urgent(args.urgent)
    report = Report("bench_mixed", "20 + 2 calls with a flood of images and videos, and without")
    with tempfile.TemporaryDirectory() as folder:
        config = written(Path(folder), args.python)
        with running(duologue("mixed", config), ttl_s=3600, urgent=args.urgent) as server:
            for number in range(args.rounds):
                for with_flood in (False, True) if number % 2 == 0 else (True, False):
                    try:
                        row = measured(
                            server, args.seconds, with_flood=with_flood, urgent=args.urgent
                        )
                    except LoadFailed as exc:
                        print(f"a run that could not be held: {exc}")
                        continue
                    report.add({"round": number, **row})
    print_table(report.rows)
    pairs = [
        (calm["p99_ms"], loud["p99_ms"])
        for calm in report.rows
        for loud in report.rows
        if not calm["flood"] and loud["flood"] and calm["round"] == loud["round"]
    ]
    rises = [loud - calm for calm, loud in pairs]
    report.finish(
        {
            "p99_rise_ms": round(statistics.median(rises), 2) if rises else None,
            "p99_rises_ms": [round(each, 2) for each in rises],
            "late_frames": sum(row["late"] for row in report.rows if row["flood"]),
            "late_frames_without": sum(row["late"] for row in report.rows if not row["flood"]),
            "frames": sum(row["frames"] for row in report.rows if row["flood"]),
            "longest_ms": max((row["max_ms"] for row in report.rows if row["flood"]), default=None),
            "images": sum(row.get("images", 0) for row in report.rows),
            "videos": sum(row.get("videos", 0) for row in report.rows),
        }
    )


if __name__ == "__main__":
    main()
