"""What does the host do for a lockstep model, at up to 2,100 frames a second in and out?

The real gateway, sessions, plugin, engine and worker process serve fake callers of 80 ms; in the
worker, the real loop and scheduler run over an engine that costs what a step on an H200 was
measured to cost and computes nothing (``costed_lm``). Measured: CPU seconds of the gateway's
process and of the worker per second and frame, and how long after the model's step a frame is with
its caller. The callers take a third of a core for a hundred calls: they need one of their own.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.process_tree import cpu_s, pids
from bench.report import Report, Row
from bench.servers import duologue, running

ROOT = Path(__file__).resolve().parents[1]
COST = "fp8 weights and KV, bf16 codec, full window"
PATH = "/v1/realtime?model=moshi"


def configuration(folder: Path, sessions: int, python: str) -> Path:
    stage = {
        "name": "moshi",
        "runner": "costed_lm",
        "work_class": "realtime",
        "max_jobs": sessions + 8,
        "queue": 0,
        "interpreter": python,
        "settings": {"cost": COST, "sessions": sessions},
    }
    pipeline = folder / "moshi.yaml"
    pipeline.write_text(json.dumps({"name": "moshi", "stages": [stage]}))
    config = folder / "config.yaml"
    config.write_text(
        json.dumps(
            {
                "models": [{"name": "moshi", "plugin": "costed"}],
                "engine": {"pipelines": [], "pipeline_files": [str(pipeline)]},
                "sessions": {"listening": {"vad": None, "end_of_turn": None, "asr": None}},
            }
        )
    )
    # Workers find runners of other packages by their entry points.
    metadata = folder / "costed_lm-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: costed-lm\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text(
        "[duologue.runners]\ncosted_lm = bench.costed_lm:COSTED_LM\n"
        "[duologue.plugins]\ncosted = duologue.duplex_plugins.moshi.plugin:create\n"
    )
    paths = [str(ROOT), str(folder), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    os.environ["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
    return config


def measure(config: Path, calls: int, seconds: float) -> Row:
    with running(duologue(config=config)) as server:
        url = f"ws://127.0.0.1:{server.port}{PATH}"
        command = [sys.executable, str(ROOT / "bench/lockstep_callers.py"), url]
        command += ["--calls", str(calls), "--seconds", str(seconds)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as callers:
            assert callers.stdout is not None
            assert callers.stdout.readline().strip() == "counting"
            workers = [pid for pid in pids(server.pid) if pid != server.pid]
            before, worker_before = cpu_s(server.pid), sum(cpu_s(pid) for pid in workers)
            began = time.monotonic()
            time.sleep(seconds - 1)
            took_s = time.monotonic() - began
            tree_s = cpu_s(server.pid) - before
            worker_s = sum(cpu_s(pid) for pid in workers) - worker_before
            heard = json.loads(callers.stdout.readline())
    gateway_s = tree_s - worker_s
    return {
        "calls": calls,
        "seconds": seconds,
        "frames_in_per_s": round(heard["sent"] / seconds),
        "gateway_cores": round(gateway_s / took_s, 3),
        "worker_cores": round(worker_s / took_s, 3),
        "gateway_us_per_frame": round(1e6 * gateway_s / took_s / (calls * 12.5), 1),
        "worker_us_per_frame": round(1e6 * worker_s / took_s / (calls * 12.5), 1),
        **heard,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--calls", default="20,80,168")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument(
        "--worker-python", default=sys.executable, help="an interpreter that has torch"
    )
    args = parser.parse_args()
    sizes = [int(each) for each in args.calls.split(",")]
    report = Report(
        "bench_lockstep_gateway", f"the host's path with a model that costs: {COST}, on an H200"
    )
    with tempfile.TemporaryDirectory() as folder:
        config = configuration(Path(folder), max(sizes), args.worker_python)
        for calls in sizes:
            report.add(measure(config, calls, args.seconds))
            print(report.rows[-1], flush=True)
    last = report.rows[-1]
    report.finish({key: value for key, value in last.items() if key != "errors"})


if __name__ == "__main__":
    main()
