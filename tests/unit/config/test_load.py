from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from duologue.config import OriginKind, add_options, load, load_from_args, parse_section
from duologue.core.errors import ConfigError
from tests.fakes.settings import DoorSettings, FakeRoot


def written(folder: Path, text: str) -> Path:
    path = folder / "duologue.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def parsed(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_options(parser, FakeRoot)
    return parser.parse_args(words)


def test_command_line_beats_environment_beats_file_beats_default(tmp_path: Path) -> None:
    path = written(tmp_path, "door: {port: 1, host: a, certificate: c}\n")
    environ = {"DUOLOGUE_DOOR__PORT": "2", "DUOLOGUE_DOOR__HOST": "b"}
    loaded = load_from_args(FakeRoot, parsed("--config", str(path), "--door.port", "3"), environ)
    door = loaded.settings.door
    assert (door.port, door.host, door.certificate) == (3, "b", tmp_path / "c")
    assert door.limits.max_message_bytes == 1_000_000


def test_each_value_knows_who_set_it(tmp_path: Path) -> None:
    path = written(tmp_path, "door:\n  host: a\n  certificate: c\n")
    loaded = load_from_args(
        FakeRoot,
        parsed("--config", str(path), "--door.port", "3"),
        {"DUOLOGUE_DOOR__HOST": "b"},
    )
    assert {key: str(origin) for key, origin in loaded.origins.items() if "door" in key} == {
        "door.host": "DUOLOGUE_DOOR__HOST",
        "door.port": "--door.port",
        "door.api_keys": "default",
        "door.certificate": f"{path}:3",
        "door.limits.max_message_bytes": "default",
    }
    assert loaded.origins["door.port"].kind is OriginKind.COMMAND_LINE


def test_mappings_from_several_sources_are_joined(tmp_path: Path) -> None:
    path = written(tmp_path, "workshop: {slots: {voice: 9, picture: 1}}\n")
    loaded = load(FakeRoot, config_file=path, environ={"DUOLOGUE_WORKSHOP__SLOTS__PICTURE": "2"})
    assert loaded.settings.workshop.slots == {"voice": 9, "picture": 2}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (
            "door:\n  api_keys: 5\n",
            "door.api_keys ({path}:2): input should be a list, such as [a, b]",
        ),
        ("door: 5\n", "door ({path}:1): input should be settings by name, such as {{name: value}}"),
        ("door:\n  port: 70000\n", "door.port = 70000 ({path}:2): input should be less than"),
        ("door:\n  prot: 1\n", "door.prot ({path}:2) is not a setting; did you mean door.port?"),
        ("dor: {port: 1}\n", "dor ({path}:1) is not a setting; did you mean door?"),
        ("door: 1\n", "door ({path}:1): input should be"),
        ("workshop: {slots: {voice: x}}\n", "workshop.slots.voice = 'x' ({path}:1): input should"),
    ],
)
def test_a_wrong_value_is_named_with_its_place(tmp_path: Path, text: str, complaint: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        load(FakeRoot, environ={}, config_file=path)
    assert caught.value.message.startswith(complaint.format(path=path))


def test_all_complaints_are_made_at_once(tmp_path: Path) -> None:
    path = written(tmp_path, "door: {port: 0, prot: 1}\n")
    with pytest.raises(ConfigError) as caught:
        load(FakeRoot, environ={}, config_file=path)
    assert len(caught.value.message.splitlines()) == 2


def test_a_misspelt_variable_stops_the_start() -> None:
    with pytest.raises(ConfigError, match="did you mean DUOLOGUE_DOOR__PORT"):
        load(FakeRoot, environ={"DUOLOGUE_DOR__PORT": "1"})


def test_variables_that_a_section_says_it_reads_do_not() -> None:
    assert load(FakeRoot, environ={"DUOLOGUE_WORKSHOP_HOME": "/w"}).settings == FakeRoot()


def test_a_secret_is_shown_neither_in_a_complaint_nor_in_the_settings(tmp_path: Path) -> None:
    path = written(tmp_path, "door: {api_keys: [[hush-hush]]}\n")
    with pytest.raises(ConfigError) as caught:
        load(FakeRoot, environ={}, config_file=path)
    assert "door.api_keys" in caught.value.message
    assert "hush-hush" not in caught.value.message
    assert caught.value.__context__ is None
    kept = load(FakeRoot, environ={}, config_file=written(tmp_path, "door: {api_keys: [hush]}"))
    assert "hush" not in repr(kept)
    assert kept.settings.door.api_keys[0].get_secret_value() == "hush"


def test_an_option_that_is_no_setting_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parsed("--door.prot", "1")
    assert "--door.prot" in capsys.readouterr().err


def test_a_block_apart_from_the_root_is_judged_in_the_same_words() -> None:
    assert parse_section(DoorSettings, {"port": 9}, whose="plugin 'door'").port == 9
    with pytest.raises(ConfigError) as caught:
        parse_section(DoorSettings, {"port": 0, "prot": 1}, whose="plugin 'door'")
    assert caught.value.message.splitlines() == [
        "port = 0 (plugin 'door'): input should be greater than or equal to 1",
        "prot (plugin 'door') is not a setting; did you mean port?",
    ]
