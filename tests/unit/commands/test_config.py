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


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\xff\xfe\x9c\x00\x81", "{path} is not UTF-8 text"),
        (b"jobs: {}\ngateway: &g {http: *g}\n", "{path}:2 is not YAML: a value holds itself"),
        (b"gateway: &g [*g]\n", "{path}:1 is not YAML: a value holds itself"),
        (b"gateway: {port: 2024-13-45}\n", "{path} is not YAML: a value is not of its type"),
        (b'models: [{name: x, plugin: "os:system"}]', "the plugin 'os:system' is not made from"),
        (b'models: [{name: x, plugin: "builtins:dict"}]', "the plugin 'builtins:dict' is none"),
        (b'models: [{name: x, plugin: ":::"}]', "the plugin ':::' is no place"),
        (
            b"jobs: {}\nmodels: [{name: x, plugin: echo}, {name: x, plugin: echo}]",
            "models.1.name = 'x' ({path}:2): another model has this name",
        ),
    ],
)
def test_what_is_no_configuration_is_told(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, content: bytes, said: str
) -> None:
    path = tmp_path / "config.yaml"
    path.write_bytes(content)
    assert config.run(parsed("check", str(path))) == 2
    assert said.format(path=path) in capsys.readouterr().out


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


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("gateway: {port: yes}", "gateway.port = True ({path}:1): input should be a number"),
        ('jobs: {folder: "a\\0b"}', "jobs.folder = 'a\\x00b' ({path}:1): input holds a NUL"),
        ('engine: {pipeline_files: ["a\\0b"]}', "({path}:1): input holds a NUL character"),
        ("jobs: {folder: ~nobody-of-this-name/jobs}", "the path ~nobody-of-this-name/jobs leads"),
        ("engine: {pipelines: [nosuch]}", "there is no pipeline 'nosuch'"),
        ("engine: {pipeline_files: [nosuch.yaml]}", "there is no file {folder}/nosuch.yaml"),
        ("engine: {pipeline_files: [.]}", "cannot read the pipeline {folder}: Is a directory"),
        ("engine: {pipeline_files: [bytes.yaml]}", "{folder}/bytes.yaml is not UTF-8 text"),
    ],
)
def test_what_serve_would_refuse_is_refused_with_its_place(
    content: str, said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "bytes.yaml").write_bytes(b"\xff\xfe\x9c")
    path = tmp_path / "config.yaml"
    path.write_text(content)
    assert config.run(parsed("check", str(path))) != 0
    assert said.format(path=path, folder=tmp_path) in capsys.readouterr().out
