from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from duologue.core.installation import duologue_command, install_command


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A clone with an environment of its own, which runs; nothing is on the PATH."""
    programs = tmp_path / ".venv" / "bin"
    programs.mkdir(parents=True)
    for name in ("python", "duologue"):
        (programs / name).touch(mode=0o755)
    monkeypatch.setattr(sys, "executable", str(programs / "python"))
    monkeypatch.setenv("PATH", "")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("clone")
def test_in_the_clone_commands_begin_at_its_environment() -> None:
    assert install_command("duologue[audio]") == (
        ".venv/bin/python -m pip install 'duologue[audio]'"
    )
    assert duologue_command("models pull") == ".venv/bin/duologue models pull"


def test_elsewhere_they_name_the_whole_path(clone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    clone_path = os.path.relpath(clone, "/")  # below the root, where we stand
    assert duologue_command("serve") == f"{clone_path}/.venv/bin/duologue serve"
    other = clone / "other"
    other.mkdir()
    monkeypatch.chdir(other)
    assert duologue_command("serve") == f"{clone}/.venv/bin/duologue serve"


def test_a_program_on_the_path_needs_no_path(clone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(clone / ".venv" / "bin"))
    assert duologue_command("serve") == "duologue serve"
