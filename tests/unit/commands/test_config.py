from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from duologue.commands import config


def parsed(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    config.register(parser.add_subparsers())
    return parser.parse_args(["config", *arguments])


def test_the_servers_settings_are_shown_with_who_set_them(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DUOLOGUE_GATEWAY__PORT", "9123")
    assert config.run(parsed("show")) == 0
    (line,) = [
        each for each in capsys.readouterr().out.splitlines() if each.startswith("gateway.port ")
    ]
    assert "9123" in line


def test_a_file_with_a_mistake_is_told(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("gateway: {prot: 1}\n")
    assert config.run(parsed("check", str(path))) != 0
    assert "prot" in capsys.readouterr().out
