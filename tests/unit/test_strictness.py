"""The rules of ``tests/conftest.py`` must bite: each is broken here once, in a suite of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[2]

BROKEN_RULES = """
import asyncio
from pathlib import Path

from duologue.telemetry import Flight, write_flight

FLIGHT = Flight("s", "test", 1.0, ())


async def forever():
    await asyncio.Event().wait()


async def test_leaves_a_task_behind():
    asyncio.create_task(forever(), name="forgotten")


async def test_ends_its_tasks():
    task = asyncio.create_task(forever())
    task.cancel()


async def test_blocks_the_loop_in_our_code(tmp_path):
    write_flight(FLIGHT, tmp_path, max_files=1)


async def test_reads_a_file_itself(tmp_path):
    assert Path(__file__).read_text()


def test_blocks_no_loop_because_there_is_none(tmp_path):
    write_flight(FLIGHT, tmp_path, max_files=1)


async def test_raises_in_a_callback():
    asyncio.get_running_loop().call_soon(lambda: 1 / 0)
    await asyncio.sleep(0)


def test_warns():
    import warnings
    warnings.warn("old", DeprecationWarning)
"""


def test_each_broken_rule_fails_its_test_and_no_other(pytester: pytest.Pytester) -> None:
    pytester.makeconftest((ROOT / "tests/conftest.py").read_text(encoding="utf-8"))
    pytester.makepyprojecttoml((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    pytester.makepyfile(**{"tests/test_rules": BROKEN_RULES})
    result = pytester.runpytest_subprocess("-rA")
    outcomes = {
        line.partition("::")[2].split(" ")[0]: line.split(" ")[0]
        for line in result.outlines
        if line.startswith(("PASSED", "FAILED", "ERROR")) and "::" in line
    }
    assert outcomes == {
        "test_leaves_a_task_behind": "ERROR",
        "test_ends_its_tasks": "PASSED",
        "test_blocks_the_loop_in_our_code": "FAILED",
        "test_reads_a_file_itself": "PASSED",
        "test_blocks_no_loop_because_there_is_none": "PASSED",
        "test_raises_in_a_callback": "ERROR",
        "test_warns": "FAILED",
    }
    result.stdout.fnmatch_lines(["*tasks left behind: *forgotten*", "*Blocking call to*"])
