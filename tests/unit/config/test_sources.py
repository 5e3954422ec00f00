from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from duologue.config.names import settings_of
from duologue.config.sources import (
    add_setting_options,
    read_command_line,
    read_environment,
    read_yaml,
)
from duologue.core.errors import ConfigError
from tests.fakes.settings import FakeRoot

SETTINGS = settings_of(FakeRoot)


def written(folder: Path, text: str) -> Path:
    path = folder / "duologue.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_gives_values_and_the_line_of_each(tmp_path: Path) -> None:
    path = written(tmp_path, "door:\n  port: 9000\n  limits:\n    max_message_bytes: 5\n")
    values, lines = read_yaml(path, SETTINGS)
    assert values == {"door": {"port": 9000, "limits": {"max_message_bytes": 5}}}
    assert lines["door.limits.max_message_bytes"] == 4


def test_relative_paths_are_relative_to_the_file_that_names_them(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "door: {certificate: keys/a.pem, host: keys}\n"
        "workshop: {folders: [models, /srv/models], weights: {asr: asr.bin}}\n",
    )
    values, _ = read_yaml(path, SETTINGS)
    assert values["door"] == {"certificate": str(tmp_path / "keys/a.pem"), "host": "keys"}
    assert values["workshop"] == {
        "folders": [str(tmp_path / "models"), "/srv/models"],
        "weights": {"asr": str(tmp_path / "asr.bin")},
    }


@pytest.mark.parametrize("text", ["", "# nothing\n", "door:\n", "door:\n  limits:\n"])
def test_an_empty_file_or_section_changes_nothing(tmp_path: Path, text: str) -> None:
    values, _ = read_yaml(written(tmp_path, text), SETTINGS)
    assert values in ({}, {"door": {}})


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("door: {port: 1\n", "duologue.yaml:2 is not YAML"),
        ("- door\n", "must hold sections by name, such as\ngateway:\n  port: 9000"),
        ("door: {port: 1}\ndoor: {port: 2}\n", "duologue.yaml:2 gives door again"),
    ],
)
def test_a_file_that_cannot_be_meant_is_refused(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        read_yaml(written(tmp_path, text), SETTINGS)


def test_a_missing_file_and_one_that_is_no_text_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.yaml: No such file"):
        read_yaml(tmp_path / "none.yaml", SETTINGS)
    (tmp_path / "duologue.yaml").write_bytes(b"\xff\xfe\xff")
    with pytest.raises(ConfigError, match="not UTF-8"):
        read_yaml(tmp_path / "duologue.yaml", SETTINGS)


def test_the_environment_reaches_nested_sections_lists_and_mappings() -> None:
    environ = {
        "DUOLOGUE_DOOR__LIMITS__MAX_MESSAGE_BYTES": "7",
        "DUOLOGUE_WORKSHOP__FOLDERS": '["a", "b"]',
        "DUOLOGUE_WORKSHOP__SLOTS__picture": "1",
    }
    assert read_environment(FakeRoot, environ) == {
        "door": {"limits": {"max_message_bytes": "7"}},
        "workshop": {"folders": ["a", "b"], "slots": {"picture": "1"}},
    }


def test_a_list_in_the_environment_that_is_not_json_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"must be JSON.*workshop"):
        read_environment(FakeRoot, {"DUOLOGUE_WORKSHOP__FOLDERS": "[a"})


def test_the_command_line_gives_only_what_was_written_on_it() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--verbose", action="store_true")
    add_setting_options(parser, FakeRoot)
    args = parser.parse_args(
        ["--verbose", "--door.port", "9200", "--workshop.folders", "a", "--workshop.folders", "b"]
    )
    assert read_command_line(FakeRoot, SETTINGS, args) == {
        "door": {"port": "9200"},
        "workshop": {"folders": ["a", "b"]},
    }
