"""The ``duologue`` command: finds the command that was asked for and reports how it ended."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from duologue import __version__
from duologue.artifacts import command as models
from duologue.commands import serve
from duologue.config import command as config
from duologue.core.errors import ConfigError, DuologueError
from duologue.settings import Settings

EXIT_FAILED = 1
EXIT_REFUSED = 2


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code: 0 done, 1 failed, 2 refused to start."""
    args = _parser().parse_args(argv)
    try:
        return _run(args)
    except ConfigError as exc:
        sys.stderr.write(f"duologue: {exc.message}\n")
        return EXIT_REFUSED
    except DuologueError as exc:
        sys.stderr.write(f"duologue: {exc.message}\n")
        return EXIT_FAILED


def _run(args: argparse.Namespace) -> int:
    match args.command:
        case "serve":
            return serve.run(args)
        case "models":
            return models.run(args)
        case "config":
            return config.run(args, Settings, os.environ)
        case _:
            raise ConfigError(f"there is no command '{args.command}'")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="duologue", description="A realtime full-duplex voice gateway."
    )
    parser.add_argument("--version", action="version", version=f"duologue {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    serve.register(commands)
    models.register(commands)
    config.register(commands, Settings)
    return parser
