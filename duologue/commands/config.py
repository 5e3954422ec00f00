"""``duologue config``: the settings of the server, and its pipelines."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

import yaml

from duologue.commands.interpreters import check_interpreters
from duologue.composition.engine_side import make_plugins, named_pipelines
from duologue.config import command
from duologue.config.yaml_text import read_nodes
from duologue.core.errors import ConfigError
from duologue.engines.pipeline import BUILT_IN_FOLDER, load_pipelines
from duologue.engines.pipeline_source import Source, read_source
from duologue.settings import Settings


def register(subparsers: Any) -> None:
    """Add ``config`` to the commands."""
    actions = command.register(subparsers, Settings)
    pipeline = actions.add_parser(
        "pipeline", help="print the values of a pipeline, and the file and line of each"
    )
    pipeline.add_argument("pipeline", metavar="NAME|FILE")


def run(args: argparse.Namespace) -> int:
    """Carry it out.

    Raises:
        ConfigError: The settings, or a pipeline, cannot be loaded.
    """
    if args.config_command == "pipeline":
        path = _path_of(args.pipeline)
        load_pipelines([path])
        for line in _table(read_source(path, BUILT_IN_FOLDER)):
            print(line)  # noqa: T201
        return 0
    return command.run(
        args, Settings, os.environ, check_values=_check_values, check_other=_is_accepted_pipeline
    )


def _check_values(settings: Settings) -> None:
    make_plugins(settings)
    check_interpreters(named_pipelines(settings).values())


def _path_of(given: str) -> Path:
    if given.endswith((".yaml", ".yml")):
        return Path(given)
    return BUILT_IN_FOLDER / f"{given}.yaml"


def _is_accepted_pipeline(path: Path) -> bool:
    """Tell whether a file holds a pipeline; its keys are none that settings have."""
    try:
        _, tree = read_nodes(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError):
        return False  # whoever reads it as settings says what is wrong
    if not isinstance(tree, dict) or not tree.keys() & {"stages", "extends"}:
        return False
    check_interpreters(load_pipelines([path]).values())
    return True


def _table(source: Source) -> list[str]:
    rows = [(key, value, source.origins.get(key, str(source.path))) for key, value in _flat(source)]
    key_width = max(len(row[0]) for row in rows)
    value_width = min(48, max(len(row[1]) for row in rows))
    return [f"{key:<{key_width}}  {value:<{value_width}}  {origin}" for key, value, origin in rows]


def _flat(source: Source) -> list[tuple[str, str]]:
    rows: list[tuple[str, str]] = []

    def walk(value: Any, key: str) -> None:
        if isinstance(value, dict) and value:
            for name, below in value.items():
                walk(below, f"{key}.{name}" if key else name)
        elif isinstance(value, list) and value and all(isinstance(each, dict) for each in value):
            for number, each in enumerate(value):
                walk(each, f"{key}.{each.get('name', number)}")
        else:
            rows.append((key, value if isinstance(value, str) else json.dumps(value)))

    walk(source.tree, "")
    if not rows:
        raise ConfigError(f"pipeline {source.path}: it is empty")
    return rows
