"""Runs the long cases: ``python -m tests.soak.long_cases``, or ``--only c22``."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
import traceback
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from duologue.clients import CallError
from tests.faults.server_process import server_process
from tests.soak.long_cases.c07_calm_turns import c07_calm, c07_over_answers
from tests.soak.long_cases.c08_endless_speech import c08_speech_that_never_ends
from tests.soak.long_cases.c22_own_voice import c22_own_voice
from tests.soak.long_cases.c39_any_speed import c39_a_gap, c39_at_half_speed, c39_ten_times_as_fast
from tests.soak.long_cases.c41_a_fan import c41_a_fan
from tests.soak.long_cases.c64_a_slow_tool import c64_a_slow_tool
from tests.soak.long_cases.people import Figures
from tests.soak.long_cases.server import a_config, install_voice

Case = Callable[[str], Awaitable[Figures]]

CASES: Sequence[Case] = (
    c07_calm,
    c07_over_answers,
    c08_speech_that_never_ends,
    c22_own_voice,
    c39_at_half_speed,
    c39_ten_times_as_fast,
    c39_a_gap,
    c41_a_fan,
    c64_a_slow_tool,
)


async def run(chosen: Sequence[Case]) -> int:
    """Let all of them call at once; returns the exit status."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        install_voice(folder)
        async with server_process(folder, a_config(folder)) as server:
            beside = [case for case in chosen if case is not c22_own_voice]
            results = await asyncio.gather(*(_judge(case, server.url) for case in beside))
            # An echo is known by its delay, so nobody else's work may come into its way.
            results += [await _judge(c, server.url) for c in chosen if c is c22_own_voice]
    failed = results.count(False)
    _say(f"{len(results) - failed} passed, {failed} failed")
    return 1 if failed else 0


async def _judge(case: Case, url: str) -> bool:
    began, name = time.monotonic(), case.__name__  # type: ignore[attr-defined]
    try:
        figures = await case(url)
    except (AssertionError, CallError, TimeoutError, ExceptionGroup):
        _say(f"FAILED {name}:\n{traceback.format_exc()}")
        return False
    _say(f"passed {name} in {time.monotonic() - began:.0f} s: {json.dumps(figures)}")
    return True


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main(arguments: Sequence[str]) -> int:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak.long_cases", description=__doc__)
    parser.add_argument("--only", default="", help="cases whose name begins so, as c22")
    args = parser.parse_args(arguments)
    return asyncio.run(run([case for case in CASES if case.__name__.startswith(args.only)]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
