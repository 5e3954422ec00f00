"""``duologue config show | check | reference``: what is set, by whom, and what could be."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from duologue.config.load import Loaded, add_options, load, load_from_args
from duologue.config.reference import settings_page
from duologue.config.section import Section
from duologue.core.errors import ConfigError

EXIT_REFUSED = 2


def register(subparsers: Any, root: type[Section]) -> Any:
    """Add ``config`` to the commands; returns its own subparsers, for further actions.

    Args:
        subparsers: What ``ArgumentParser.add_subparsers`` returned; its class is private.
        root: The class whose settings are shown and checked.
    """
    config = subparsers.add_parser("config", help="show the settings, or check a file of them")
    actions = config.add_subparsers(dest="config_command", required=True, metavar="ACTION")
    show = actions.add_parser("show", help="print every setting, its value and who set it")
    add_options(show, root)
    actions.add_parser("reference", help="print the reference page of all settings")
    check = actions.add_parser("check", help="say whether files would be accepted")
    check.add_argument("files", nargs="+", type=Path, metavar="FILE")
    return actions


def run(
    args: argparse.Namespace,
    root: type[Section],
    environ: Mapping[str, str],
    write: Callable[[str], None] = print,
    *,
    check_values: Callable[[Any], object] = lambda _settings: None,
    check_other: Callable[[Path], bool] = lambda _path: False,
) -> int:
    """Carry out ``config``; returns the exit code.

    Args:
        check_values: Judges settings that are loaded, further than their classes can; raises
            ``ConfigError`` where it does not like them.
        check_other: Checks a file that holds something else than settings, and says whether it
            was one; raises ``ConfigError`` for one that would be refused.

    Raises:
        ConfigError: ``show`` cannot load the settings.
    """
    if args.config_command == "show":
        for line in _table(load_from_args(root, args, environ)):
            write(line)
        return 0
    if args.config_command == "reference":
        write(settings_page(root))
        return 0
    refused = False
    for path in args.files:
        try:
            if not check_other(path):
                check_values(load(root, environ={}, config_file=path).settings)
        except ConfigError as exc:
            refused = True
            write(exc.message)
        else:
            write(f"{path}: accepted")
    return EXIT_REFUSED if refused else 0


def _table(loaded: Loaded[Section]) -> list[str]:
    values = loaded.settings.model_dump(mode="json")
    rows = [(key, _text(values, key), str(origin)) for key, origin in loaded.origins.items()]
    key_width = max((len(row[0]) for row in rows), default=0)
    value_width = max((len(row[1]) for row in rows), default=0)
    return [f"{key:<{key_width}}  {value:<{value_width}}  {origin}" for key, value, origin in rows]


def _text(values: object, key: str) -> str:
    """A value as it would be written in a file; secrets are stars by now."""
    for part in key.split("."):
        values = values.get(part) if isinstance(values, dict) else None
    return values if isinstance(values, str) and values else json.dumps(values, ensure_ascii=False)
