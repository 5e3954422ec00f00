from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import pytest

from duologue.commands.doctor.command import lines, register, run
from duologue.commands.doctor.findings import examine
from tests.unit.commands.doctor.facts import HEALTHY


def parsed(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    register(parser.add_subparsers())
    return parser.parse_args(["doctor", *arguments])


def test_every_finding_is_a_line_and_every_fix_one_below_it() -> None:
    shown = lines(examine(replace(HEALTHY, python=(3, 9, 0))))
    assert shown[0].startswith("MISSING  Python")
    assert shown[1].lstrip().startswith("-> install a newer one")
    assert len(shown) == len(examine(HEALTHY)) + 1


def test_it_says_whether_the_demonstration_could_run(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DUOLOGUE_CACHE", str(tmp_path))
    code = run(parsed("--port", "0"))
    said = capsys.readouterr().out
    assert code == (1 if "MISSING" in said else 0)
    assert "duologue demo" in said.splitlines()[-1]
