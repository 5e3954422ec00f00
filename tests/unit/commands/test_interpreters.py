from __future__ import annotations

import sys
from pathlib import Path

import pytest

from duologue.commands.interpreters import check_interpreters
from duologue.core.errors import ConfigError
from duologue.engines.pipeline import Pipeline, StageSpec


def pipeline(interpreter: str | None, **env: str) -> Pipeline:
    stage = StageSpec(name="voice", runner="tone", interpreter=interpreter, env=env)
    return Pipeline(name="speech", stages=(stage,))


def script(folder: Path, text: str) -> str:
    path = folder / "python"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_a_python_with_duologue_is_fine_and_so_is_none() -> None:
    root = str(Path(__file__).parents[3])
    check_interpreters([pipeline(None), pipeline(sys.executable, PYTHONPATH=root)])


def test_the_environment_of_the_stage_counts(tmp_path: Path) -> None:
    path = script(tmp_path, 'test "$MODE" = voice')
    check_interpreters([pipeline(path, MODE="voice")])
    with pytest.raises(ConfigError, match="status 1"):
        check_interpreters([pipeline(path, MODE="other")])


def test_one_that_is_not_there_is_named_with_its_stage() -> None:
    with pytest.raises(ConfigError, match=r"'voice' .*'speech'.*/nowhere/python cannot be started"):
        check_interpreters([pipeline("/nowhere/python")])


def test_one_without_duologue_is_told_what_to_do(tmp_path: Path) -> None:
    path = script(tmp_path, "echo 'No module named duologue' >&2; exit 1")
    with pytest.raises(ConfigError, match=r"No module named duologue\. Install duologue there"):
        check_interpreters([pipeline(path)])
