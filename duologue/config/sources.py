"""Reads settings from a file, the environment and the command line, as nested mappings.

Values are not validated here, and no source knows of another.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel
from pydantic_settings import (
    BaseSettings,
    CliSettingsSource,
    EnvSettingsSource,
    SettingsConfigDict,
    SettingsError,
)

from duologue.config.names import ENV_DELIMITER, ENV_PREFIX, Setting, section_keys
from duologue.config.yaml_text import read_nodes
from duologue.core.errors import ConfigError

Tree = dict[str, Any]
"""Settings as read: nested by section, not yet validated. Stays inside this package."""

V = TypeVar("V")


def read_yaml(path: Path, settings: Mapping[str, Setting]) -> tuple[Tree, dict[str, int]]:
    """Read a file; return its values and the line of each dotted key.

    Raises:
        ConfigError: The file is missing, is not YAML, or gives a key twice.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as exc:
        raise ConfigError(f"cannot read the configuration {path}: {exc.strerror}") from exc
    except UnicodeDecodeError as exc:
        raise ConfigError(f"{path} is not UTF-8 text") from exc
    try:
        node, values = read_nodes(text)
    except yaml.YAMLError as exc:
        mark = getattr(exc, "problem_mark", None)
        where = f"{path}:{mark.line + 1}" if mark else str(path)
        raise ConfigError(f"{where} is not YAML: {getattr(exc, 'problem', exc)}") from exc
    if values is None:
        return {}, {}
    if not isinstance(values, dict) or not isinstance(node, yaml.MappingNode):
        raise ConfigError(f"{path} must hold sections by name, such as\ngateway:\n  port: 9000")
    lines: dict[str, int] = {}
    _note_lines(node, "", lines, path)
    sections = section_keys(settings)
    _drop_empty_sections(values, "", sections)
    for key, setting in settings.items():
        if setting.holds_path:
            _anchor(values, key.split("."), path.parent)
    return values, lines


def read_environment(root: type[BaseModel], environ: Mapping[str, str]) -> Tree:
    """Read the variables that begin with ``DUOLOGUE_``.

    Raises:
        ConfigError: A variable that must hold JSON does not.
    """
    try:
        return _GivenEnvironment(_reader(root), environ)()
    except SettingsError as exc:
        reason = f": {exc.__cause__}" if exc.__cause__ else ""
        raise ConfigError(
            f"a DUOLOGUE_ variable that holds a list, a mapping or a whole section must be JSON"
            f" ({exc}{reason})"
        ) from exc


def add_setting_options(parser: argparse.ArgumentParser, root: type[BaseModel]) -> None:
    """Give ``parser`` one option for each setting, as ``--gateway.port``."""
    _command_line(root, parser)


def read_command_line(
    root: type[BaseModel], settings: Mapping[str, Setting], args: argparse.Namespace
) -> Tree:
    """Take the settings out of parsed arguments, and leave what else is in there alone."""
    known = settings.keys() | section_keys(settings)
    ours = {name: value for name, value in vars(args).items() if name in known}
    source = _command_line(root, argparse.ArgumentParser())
    source(parsed_args=ours)
    return dict(source())


class _GivenEnvironment(EnvSettingsSource):
    """Reads the mapping that it is given; ``os.environ`` is the business of the caller."""

    def __init__(self, settings_cls: type[BaseSettings], environ: Mapping[str, str]) -> None:
        self._environ = environ
        super().__init__(settings_cls)

    def _load_env_vars(self) -> Mapping[str, str | None]:
        return {name.lower(): value for name, value in self._environ.items()}


def _reader(root: type[BaseModel]) -> type[BaseSettings]:
    """The form of ``root`` that the sources of pydantic-settings ask for; never instantiated."""

    class Reader(BaseSettings, root):  # type: ignore[misc, valid-type]
        model_config = SettingsConfigDict(
            env_prefix=ENV_PREFIX, env_nested_delimiter=ENV_DELIMITER, extra="forbid"
        )

    return Reader


def _command_line(
    root: type[BaseModel], parser: argparse.ArgumentParser
) -> CliSettingsSource[argparse.ArgumentParser]:
    return CliSettingsSource(
        _reader(root),
        root_parser=parser,
        cli_avoid_json=True,
        cli_hide_none_type=True,
        cli_implicit_flags=True,
    )


def _note_lines(node: yaml.MappingNode, prefix: str, lines: dict[str, int], path: Path) -> None:
    for key_node, value_node in node.value:
        key = f"{prefix}{key_node.value}"
        line = key_node.start_mark.line + 1
        if key in lines:
            raise ConfigError(f"{path}:{line} gives {key} again; it stands in line {lines[key]}")
        lines[key] = line
        if isinstance(value_node, yaml.MappingNode):
            _note_lines(value_node, key + ".", lines, path)


def _drop_empty_sections(tree: Tree, prefix: str, sections: set[str]) -> None:
    """``gateway:`` with nothing below it means a section without changes."""
    for name in list(tree):
        key = f"{prefix}{name}"
        if key in sections:
            if tree[name] is None:
                del tree[name]
            elif isinstance(tree[name], dict):
                _drop_empty_sections(tree[name], key + ".", sections)


def _anchor(tree: Tree, parts: list[str], folder: Path) -> None:
    """Make the relative paths under one key absolute, if the file sets it."""
    *above, last = parts
    for part in above:
        below = tree.get(part)
        if not isinstance(below, dict):
            return
        tree = below
    if last in tree:
        tree[last] = _anchored(tree[last], folder)


def _anchored(value: V, folder: Path) -> V | str | list[Any] | Tree:
    if isinstance(value, str) and "\0" not in value:  # whoever validates it says what is wrong
        try:
            return str((folder / Path(value).expanduser()).resolve())
        except RuntimeError as exc:  # a home of nobody, or links in a circle
            raise ConfigError(f"the path {value} leads nowhere: {exc}") from exc
    if isinstance(value, list):
        return [_anchored(item, folder) for item in value]
    if isinstance(value, dict):
        return {key: _anchored(item, folder) for key, item in value.items()}
    return value
