"""The ``duologue`` command: finds the command that was asked for and reports how it ended.

A command's module is imported only when it is asked for: ``talk`` runs where only the client is
installed. This module must not know what a command does.
"""

from __future__ import annotations

import argparse
import difflib
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NoReturn

from duologue import __version__
from duologue.core.errors import ConfigError, DuologueError
from duologue.core.installation import install_command

LONGEST_USAGE_CHARS = 1000
"""What is longer hides the error below it; ``serve`` has more than a hundred options."""

EXIT_FAILED = 1
EXIT_REFUSED = 2
EXIT_INTERRUPTED = 130


@dataclass(frozen=True, slots=True)
class Command:
    """One command: a module with ``register(subparsers)`` and ``run(args) -> int``.

    Args:
        extra: The extra of the package that the module needs; empty for the plain install.
    """

    name: str
    help: str
    extra: str = "server"

    def load(self) -> Any:
        """Import the command's module.

        Raises:
            ConfigError: It needs packages that are not installed.
        """
        try:
            return import_module(f"duologue.commands.{self.name}")
        except ModuleNotFoundError as exc:
            if exc.name is None or exc.name.split(".")[0] == "duologue":
                raise
            raise ConfigError(
                f"'{self.name}' needs the package '{exc.name}', which is not installed. "
                f"Install it with: {install_command(f'duologue[{self.extra}]')}"
            ) from exc


COMMANDS = (
    Command("serve", "run the server and its web page"),
    Command("talk", "hold a call from this terminal", extra="audio"),
    Command("demo", "hold a whole call with bundled questions, and check it", extra="local"),
    Command("loadtest", "hold many calls at once and measure them", extra="audio"),
    Command("replay", "show what happened in a recorded call, and draw it"),
    Command("doctor", "say what is missing for a call, and how to get it"),
    Command("models", "list, fetch, check and compare the weights"),
    Command("config", "show the settings, or check a file of them"),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code: 0 done, 1 failed, 2 refused to start."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    # Before numpy loads: the products of a resampler are small, and threads cost them more than
    # they give. Worker processes choose for themselves.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        return _run(arguments)
    except ConfigError as exc:
        return _report(exc.message, EXIT_REFUSED)
    except DuologueError as exc:
        return _report(exc.message, EXIT_FAILED)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    # One of the three agreed places for a broad except: a person asked for a command, not for a
    # traceback; who wants one sets DUOLOGUE_TRACEBACK.
    except Exception as exc:
        if os.environ.get("DUOLOGUE_TRACEBACK"):
            raise
        return _report(
            f"internal error: {type(exc).__name__}: {exc}. Set DUOLOGUE_TRACEBACK=1 to see where.",
            EXIT_FAILED,
        )


def _run(arguments: list[str]) -> int:
    parser = _Parser(prog="duologue", description="A realtime full-duplex voice gateway.")
    parser.add_argument("--version", action="version", version=f"duologue {__version__}")
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    wanted = next((word for word in arguments if not word.startswith("-")), None)
    module: Any = None
    for command in COMMANDS:
        if command.name == wanted:
            module = command.load()
            module.register(subparsers)
        else:
            subparsers.add_parser(command.name, help=command.help)
    args, unknown = parser.parse_known_args(arguments)
    if unknown:
        chosen = subparsers.choices[args.command]
        chosen.error(_what_is_unknown(unknown, chosen))
    result: int = module.run(args)
    return result


class _Parser(argparse.ArgumentParser):
    """Refuses in few lines; whoever did not name a command or an action gets the list of them.

    The parsers of commands are of this class, too.
    """

    def error(self, message: str) -> NoReturn:
        """Say what is wrong and leave."""
        if message.endswith(("COMMAND", "ACTION")):
            self.print_help(sys.stderr)
            self.exit(EXIT_REFUSED)
        usage = self.format_usage()
        if len(usage) > LONGEST_USAGE_CHARS:
            usage = f"usage: {self.prog} [OPTION ...]; {self.prog} --help lists them\n"
        self.exit(EXIT_REFUSED, f"{usage}{self.prog}: {message}\n")

    def format_help(self) -> str:
        """As usual; descriptions are docstrings, whose marks mean nothing on a terminal."""
        return super().format_help().replace("``", "")

    def options(self) -> list[str]:
        """Return every option, those of actions below included."""
        found = [option for action in self._actions for option in action.option_strings]
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):
                found += [option for below in action.choices.values() for option in below.options()]
        return found


def _what_is_unknown(unknown: Sequence[str], parser: _Parser) -> str:
    option = next((word for word in unknown if word.startswith("--")), None)
    if option is None:
        return f"unknown arguments: {' '.join(unknown)}"
    name = option.partition("=")[0]
    known = sorted(set(parser.options()))
    # ``--port`` is short for what somebody remembers of ``--gateway.port``.
    near = [each for each in known if each.endswith("." + name.removeprefix("--"))]
    near = near or difflib.get_close_matches(name, known, n=1)
    return f"there is no option {name}" + (f"; did you mean {' or '.join(near)}?" if near else "")


def _report(message: str, code: int) -> int:
    sys.stderr.write(f"duologue: {message}\n")
    return code
