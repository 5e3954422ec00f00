"""The command line: which command runs, and how it reports its end."""

from __future__ import annotations

import argparse
import sys
from types import ModuleType
from typing import Any

import pytest

from duologue import __version__
from duologue.cli import COMMANDS, Command, main
from duologue.core.errors import ConfigError, EngineError


class FakeCommand(ModuleType):
    """A command's module, in the place of ``serve``."""

    def __init__(self, outcome: int | BaseException) -> None:
        super().__init__("duologue.commands.serve")
        self.outcome = outcome
        self.args: argparse.Namespace | None = None
        self.options = ["--server.name"]

    def register(self, subparsers: Any) -> None:
        parser = subparsers.add_parser("serve")
        parser.add_argument("--port", type=int)
        for option in self.options:
            parser.add_argument(option)

    def run(self, args: argparse.Namespace) -> int:
        self.args = args
        if isinstance(self.outcome, BaseException):
            raise self.outcome
        return self.outcome


def install(monkeypatch: pytest.MonkeyPatch, outcome: int | BaseException) -> FakeCommand:
    command = FakeCommand(outcome)
    monkeypatch.setitem(sys.modules, command.__name__, command)
    return command


@pytest.mark.parametrize("code", [0, 1, 3])
def test_a_command_gets_its_arguments_and_decides_the_exit_code(
    monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    command = install(monkeypatch, code)
    assert main(["serve", "--port", "9000"]) == code
    assert command.args is not None
    assert command.args.port == 9000


def test_without_a_list_the_arguments_are_those_of_the_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    install(monkeypatch, 0)
    monkeypatch.setattr(sys, "argv", ["duologue", "serve"])
    assert main() == 0


@pytest.mark.parametrize(
    ("fault", "code", "said"),
    [
        (ConfigError("the port is taken"), 2, "duologue: the port is taken\n"),
        (EngineError("no model"), 1, "duologue: no model\n"),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_how_it_went_wrong_is_the_exit_code_and_one_line(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    fault: BaseException,
    code: int,
    said: str,
) -> None:
    install(monkeypatch, fault)
    assert main(["serve"]) == code
    assert capsys.readouterr().err == said


def test_a_bug_is_a_sentence_unless_somebody_wants_the_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    install(monkeypatch, ZeroDivisionError("by zero"))
    monkeypatch.delenv("DUOLOGUE_TRACEBACK", raising=False)
    assert main(["serve"]) == 1
    assert "internal error: ZeroDivisionError: by zero" in capsys.readouterr().err
    monkeypatch.setenv("DUOLOGUE_TRACEBACK", "1")
    with pytest.raises(ZeroDivisionError):
        main(["serve"])


def test_a_command_that_needs_more_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delitem(sys.modules, "duologue.commands.serve", raising=False)
    monkeypatch.setitem(sys.modules, "uvloop", None)
    monkeypatch.delitem(sys.modules, "duologue.commands.event_loop", raising=False)
    assert main(["serve"]) == 2
    said = capsys.readouterr().err
    assert "'serve' needs the package 'uvloop', which is not installed" in said
    assert "pip install 'duologue[server]'" in said


def test_a_module_of_ours_that_is_missing_is_a_bug_and_no_missing_package(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "duologue.commands.serve", None)
    with pytest.raises(ModuleNotFoundError, match=r"duologue\.commands\.serve"):
        Command("serve", "").load()


@pytest.mark.parametrize("arguments", [[], ["dance"], ["serve", "--nonsense"]])
def test_what_cannot_be_understood_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    install(monkeypatch, 0)
    with pytest.raises(SystemExit) as refusal:
        main(arguments)
    assert refusal.value.code == 2
    assert "usage: duologue" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "meant"),
    [("--prot", "--port"), ("--prot=1", "--port"), ("--name", "--server.name")],
)
def test_an_option_that_is_misspelt_is_refused_with_the_nearest(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], given: str, meant: str
) -> None:
    install(monkeypatch, 0)
    with pytest.raises(SystemExit) as refusal:
        main(["serve", given, "9000"])
    assert refusal.value.code == 2
    option = given.partition("=")[0]
    assert capsys.readouterr().err.endswith(
        f"duologue serve: there is no option {option}; did you mean {meant}?\n"
    )


def test_a_command_with_many_options_is_refused_in_two_lines(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    install(monkeypatch, 0).options = [f"--section.setting_{number}" for number in range(100)]
    with pytest.raises(SystemExit):
        main(["serve", "--port", "many"])
    usage, error = capsys.readouterr().err.splitlines()
    assert usage == "usage: duologue serve [OPTION ...]; duologue serve --help lists them"
    assert "invalid int value: 'many'" in error


def test_without_a_command_they_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as refusal:
        main([])
    assert refusal.value.code == 2
    shown = capsys.readouterr().err
    assert all(command.help in shown for command in COMMANDS)


def test_help_names_every_command_and_loads_none(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in COMMANDS:
        monkeypatch.setitem(sys.modules, f"duologue.commands.{command.name}", None)
    with pytest.raises(SystemExit) as end:
        main(["--help"])
    assert end.value.code == 0
    shown = capsys.readouterr().out
    assert [command.name for command in COMMANDS if command.name not in shown] == []


def test_the_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out == f"duologue {__version__}\n"


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_every_command_can_be_loaded_and_explains_itself(
    command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        main([command.name, "--help"])
    assert end.value.code == 0
    assert f"duologue {command.name}" in capsys.readouterr().out
