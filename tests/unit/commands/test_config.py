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


def test_a_plugin_that_there_is_not_is_told_and_an_option_that_it_has_not(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("models: [{name: mine, plugin: nosuch}]\n")
    assert config.run(parsed("check", str(path))) != 0
    path.write_text("models: [{name: mine, plugin: echo, options: {loud: 1}}]\n")
    assert config.run(parsed("check", str(path))) != 0
    said = capsys.readouterr().out
    assert "there is no plugin 'nosuch'" in said
    assert "loud (plugin echo) is not a setting" in said


def test_a_pipeline_is_shown_with_the_place_of_each_value(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("extends: tts\nname: mine\nstages:\n  - {name: tts, max_jobs: 2}\n")
    assert config.run(parsed("pipeline", str(path))) == 0
    shown = {line.split()[0]: line.split()[1:] for line in capsys.readouterr().out.splitlines()}
    assert shown["stages.tts.max_jobs"] == ["2", f"{path}:4"]
    assert shown["stages.tts.runner"][0] == "hibari"
    assert shown["stages.tts.runner"][1].endswith("tts.yaml:5")


def test_pipelines_are_checked_as_settings_are(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    good = tmp_path / "good.yaml"
    good.write_text("extends: tts\nname: good\noutputs: audio\n")
    bad = tmp_path / "bad.yaml"
    bad.write_text("extends: tts\nname: bad\noutputs: speech\n")
    assert config.run(parsed("check", str(good))) == 0
    assert config.run(parsed("check", str(good), str(bad))) != 0
    assert "'speech'" in capsys.readouterr().out
