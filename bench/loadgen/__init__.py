"""Runs the load generator (loadgen.c) as a process of its own and reads what it measured."""

import json
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from c_programs import compiled
from priority import go_first

SOURCE = Path(__file__).with_name("loadgen.c")


@dataclass(frozen=True)
class Load:
    """One run: so many sessions, each one append per period."""

    sessions: int
    seconds: int = 3
    warm_seconds: int = 1
    period_ms: int = 40
    connect_gap_us: int = 500
    settle_ms: int = 0
    verify: bool = False
    """Compare every byte that comes back; costs the generator too much for latency figures."""

    hold: bool = False
    """Connect and stay silent."""


@dataclass(frozen=True)
class Target:
    """How the generator talks to a server."""

    path: str = "/"
    script: Sequence[str] = field(default=())
    """Opening messages, in order: `> text` is sent, `< text` is waited for."""

    raw: bool = False
    """The server sends appends back as they are instead of audio deltas."""

    ack: bool = False
    """Acknowledge each numbered event, as clients of the duplex dialect do."""


class LoadFailed(Exception):
    """The generator could not hold the run: server full, closed, or wrong content."""


def run_load(
    port: int,
    target: Target,
    load: Load,
    at_mark: Callable[[str], None],
    *,
    cpu: int | None = None,
    urgent: bool = False,
) -> dict[str, Any]:
    """Hold one run and return the generator's figures.

    Args:
        at_mark: Called at CONNECTED, START and END, as they happen.
        cpu: The core to run on.
        urgent: Run ahead of the machine's other work (see `priority.py`).

    Raises:
        LoadFailed: With what the generator said.
    """
    with tempfile.NamedTemporaryFile("w", suffix=".script") as script:
        script.write("".join(f"{line}\n" for line in target.script))
        script.flush()
        command = [
            *(["taskset", "-c", str(cpu)] if cpu is not None else []),
            *[str(compiled(SOURCE)), "--port", str(port), "--path", target.path],
            *["--sessions", str(load.sessions), "--seconds", str(load.seconds)],
            *["--warm-seconds", str(load.warm_seconds), "--period-ms", str(load.period_ms)],
            *["--connect-gap-us", str(load.connect_gap_us), "--settle-ms", str(load.settle_ms)],
            *(["--script", script.name] if target.script else []),
            *(["--raw"] if target.raw else []),
            *(["--ack"] if target.ack else []),
            *(["--verify"] if load.verify else []),
            *(["--hold"] if load.hold else []),
        ]
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=go_first if urgent else None,
        )
        assert process.stdout is not None
        assert process.stderr is not None
        figures = None
        for line in process.stdout:
            if line.startswith("LOADGEN "):
                figures = json.loads(line.removeprefix("LOADGEN "))
            else:
                at_mark(line.strip())
        said = process.stderr.read().strip()
        if process.wait() != 0 or figures is None:
            raise LoadFailed(said[-1000:] or f"loadgen ended with {process.returncode}")
    return dict(figures)
