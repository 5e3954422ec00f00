"""Builds the settings: command line over environment over file over defaults.

Refuses to start on anything that it does not understand, says where each value came from, and
must not know which sections exist: the root class is handed in.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Generic, TypeVar

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from duologue.config.names import (
    Setting,
    did_you_mean,
    env_name,
    section_keys,
    settings_of,
    unknown_env_names,
    variables_also_read,
)
from duologue.config.section import Section
from duologue.config.sources import (
    Tree,
    add_setting_options,
    read_command_line,
    read_environment,
    read_yaml,
)
from duologue.core.errors import ConfigError

S = TypeVar("S", bound=Section)


class OriginKind(Enum):
    """Where a value was set; later ones win."""

    DEFAULT = "default"
    FILE = "file"
    ENVIRONMENT = "environment"
    COMMAND_LINE = "command line"


@dataclass(frozen=True, slots=True)
class Origin:
    """Who set a value: the line of a file, a variable or an option."""

    kind: OriginKind
    where: str = ""

    def __str__(self) -> str:
        return self.where or self.kind.value


@dataclass(frozen=True)
class Loaded(Generic[S]):
    """Validated settings, and the origin of each by dotted key."""

    settings: S
    origins: Mapping[str, Origin]


def add_options(parser: argparse.ArgumentParser, root: type[Section]) -> None:
    """Give a command ``--config FILE`` and an option for every setting of ``root``."""
    parser.add_argument("--config", type=Path, metavar="FILE", help="YAML with settings by section")
    add_setting_options(parser, root)


def load_from_args(
    root: type[S],
    args: argparse.Namespace,
    environ: Mapping[str, str],
) -> Loaded[S]:
    """``load`` for a command whose parser went through ``add_options``."""
    return load(root, environ=environ, config_file=args.config, args=args)


def load(
    root: type[S],
    *,
    environ: Mapping[str, str],
    config_file: Path | None = None,
    args: argparse.Namespace | None = None,
) -> Loaded[S]:
    """Read all sources and validate the result.

    Args:
        root: The class whose fields are the sections.
        environ: Usually ``os.environ``; only ``DUOLOGUE_`` names are looked at.
        config_file: YAML; its relative paths are relative to itself.
        args: Parsed by a parser that went through ``add_options``.

    Raises:
        ConfigError: A name is unknown or a value is out of bounds. Names them all.
    """
    settings = settings_of(root)
    layers: list[_Layer] = []
    if config_file is not None:
        tree, lines = read_yaml(config_file, settings)
        layers.append(_Layer(OriginKind.FILE, tree, _lines_of(config_file, lines)))
    complaints = unknown_env_names(environ, settings, variables_also_read(root))
    if complaints:
        raise ConfigError("\n".join(complaints))
    layers.append(_Layer(OriginKind.ENVIRONMENT, read_environment(root, environ), env_name))
    if args is not None:
        tree = read_command_line(root, settings, args)
        layers.append(_Layer(OriginKind.COMMAND_LINE, tree, lambda key: f"--{key}"))

    merged: Tree = {}
    for layer in layers:
        merged = _merge(merged, layer.tree)
    validated = _validated(root, merged, settings, layers)
    return Loaded(validated, {key: _origin(key, layers) for key in settings})


def parse_section(section: type[S], values: Mapping[str, object], *, whose: str) -> S:
    """Validate a block of settings that stands apart from the root, as a plugin's.

    Args:
        whose: Named in complaints, as ``options of plugin 'echo'``.

    Raises:
        ConfigError: A name is unknown or a value is out of bounds. Names them all.
    """
    block = _Layer(OriginKind.FILE, dict(values), lambda _: whose)
    return _validated(section, block.tree, settings_of(section), [block])


@dataclass(frozen=True)
class _Layer:
    """What one source set, and how it says where."""

    kind: OriginKind
    tree: Tree
    where: Callable[[str], str]

    def sets(self, key: str) -> bool:
        node: object = self.tree
        for part in key.split("."):
            if not isinstance(node, dict) or part not in node:
                return False
            node = node[part]
        return True


def _lines_of(path: Path, lines: Mapping[str, int]) -> Callable[[str], str]:
    return lambda key: f"{path}:{lines[key]}" if key in lines else str(path)


def _origin(key: str, layers: list[_Layer]) -> Origin:
    """The strongest layer that sets the key, or something below it."""
    for layer in reversed(layers):
        if layer.sets(key):
            return Origin(layer.kind, layer.where(key))
    return Origin(OriginKind.DEFAULT)


def _merge(weak: Tree, strong: Tree) -> Tree:
    merged = dict(weak)
    for name, value in strong.items():
        below = merged.get(name)
        both = isinstance(below, dict) and isinstance(value, dict)
        merged[name] = _merge(below, value) if both else value  # type: ignore[arg-type]
    return merged


def _validated(
    section: type[S], tree: Tree, settings: Mapping[str, Setting], layers: list[_Layer]
) -> S:
    try:
        return section.model_validate(tree)
    except ValidationError as exc:
        errors = exc.errors(include_url=False, include_context=False)
        complaints = "\n".join(_complaint(error, settings, layers) for error in errors)
    raise ConfigError(complaints)  # not from the error of pydantic, whose text shows secrets


def _complaint(error: ErrorDetails, settings: Mapping[str, Setting], layers: list[_Layer]) -> str:
    key = ".".join(str(part) for part in error["loc"])
    # Errors inside a list or a mapping have longer places than the setting itself.
    at = next((above for above in _upwards(key) if any(layer.sets(above) for layer in layers)), key)
    origin = _origin(at, layers)
    if error["type"] == "extra_forbidden":
        known = settings.keys() | section_keys(settings)
        return f"{key} ({origin}) is not a setting{did_you_mean(key, known)}"
    reason = _reason(error)
    owner = next((settings[above] for above in _upwards(key) if above in settings), None)
    # A section that failed as a whole may hold secrets too; only single values are shown.
    shown = "" if owner is None or owner.is_secret else f" = {error['input']!r}"
    return f"{key}{shown} ({origin}): {reason}"


def _reason(error: ErrorDetails) -> str:
    """What is wrong, in words of settings: a file has lists, where Python has tuples."""
    if error["type"] in ("tuple_type", "list_type"):
        return "input should be a list, such as [a, b]"
    if error["type"] in ("model_type", "dict_type"):
        return "input should be settings by name, such as {name: value}"
    text = error["msg"].removeprefix("Value error, ")
    return text[:1].lower() + text[1:]


def _upwards(key: str) -> Iterator[str]:
    parts = key.split(".")
    return (".".join(parts[:depth]) for depth in range(len(parts), 0, -1))
