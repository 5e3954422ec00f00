"""Rules that hold for the whole repository, each with the reason why it is one."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "duologue"
MODULES = sorted(PACKAGE.rglob("*.py"))
PACKAGES = [path for path in MODULES if path.name == "__init__.py"]

WITHOUT_TEST_OF_THEIR_OWN = {
    "__main__.py": "calls cli.main",
    "clients/devices.py": "declarations only",
    "clients/reconnect/events.py": "declarations only",
    "clients/transports/base.py": "declarations only",
    "duplex_plugins/contract.py": "declarations only",
    "duplex_plugins/one_shot.py": "declarations only",
    "duplex_plugins/retention.py": "declarations only",
    "engines/executors/base.py": "declarations only",
    "engines/executors/ray/messages.py": "declarations only",
    "engines/lifecycle_port.py": "declarations only",
    "engines/models/moshi_lm/weights.py": "declarations only",
    "engines/ports.py": "declarations only",
    "engines/runners/contract.py": "declarations only",
    "engines/runners/speech/contract.py": "declarations only",
    "engines/schedulers/base.py": "declarations only",
    "engines/transport/port.py": "declarations only",
    "gateway/http/services.py": "declarations only",
    "hosts/answer_questions.py": "declarations only",
    "hosts/engine_messages.py": "declarations only",
    "hosts/job_questions.py": "declarations only",
    "hosts/lifecycle_questions.py": "declarations only",
    "hosts/link_struct.py": "declarations only",
    "hosts/messages.py": "declarations only",
    "hosts/port.py": "declarations only",
    "hosts/questions.py": "declarations only",
    "hosts/settings.py": "declarations only",
    "gateway/webrtc/peer.py": "declarations only",
    "kernels/pages.py": "declarations only",
    "protocol/dialect.py": "declarations only",
    "sessions/effects.py": "declarations only",
    "sessions/inputs.py": "declarations only",
}
"""Modules that need no mirror among the tests. Behaviour always does."""

BROAD_EXCEPTS = {
    "core/tasks.py:run": "a crash of one child must not take its siblings along",
    "engines/worker_life.py:serve": "the last word of a dying worker is why",
    "cli.py:main": "a person gets a sentence, not a traceback",
}
"""Everywhere else an exception that nobody expected is somebody's to see."""

SERVER_ONLY = (
    "aiohttp",
    "av",
    "cryptography",
    "opentelemetry",
    "prometheus_client",
    "pydantic",
    "pydantic_settings",
    "rich",
    "soundfile",
    "uvloop",
    "webrtcvad",
    "yaml",
)
"""What the plain install, the client SDK, does without (extra ``server`` in pyproject.toml)."""

SAME_IN_EVERY_FOLDER = {"create": "how a plugin is made"}
"""Public names that a contract gives to each of several packages."""

HEAVY = ("torch", "vllm", "ray", "diffusers", "transformers", "ctranslate2", "onnxruntime")
"""What only the processes that compute may load."""

MODEL_FREE = ("core", "config", "telemetry", "protocol", "gateway", "hosts", "sessions", "clients")
# "whisper-1" is what the API calls any recogniser, whichever it is.
MODEL_NAMES = re.compile(
    r"\b(qwen|whisper(?!-[1*])|silero|hibari|smart.?turn|moshi|llama|kokoro)", re.I
)

MAX_LINES = 450
MAX_TEST_LINES = 500
"""A test file mirrors one module, so it cannot be cut along its own seams."""


def name(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def written_files(*suffixes: str) -> list[Path]:
    """Every file of ours with one of these endings."""
    folders = [ROOT / folder for folder in ("duologue", "tests", "bench", "examples", "docs")]
    found = [
        path
        for folder in folders
        for path in folder.rglob("*")
        if path.suffix in suffixes and "node_modules" not in path.parts
    ]
    return sorted([*found, *(path for path in ROOT.glob("*.md") if ".md" in suffixes)])


def definitions(node: ast.AST, prefix: str = "") -> Iterator[tuple[str, ast.AST]]:
    """Each public class and function, with its dotted name."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            if child.name.startswith("_"):
                continue
            yield prefix + child.name, child
            if isinstance(child, ast.ClassDef):
                yield from definitions(child, f"{prefix}{child.name}.")


def test_every_module_has_a_test_module_in_the_same_place() -> None:
    missing = []
    for path in MODULES:
        mirror = ROOT / "tests/unit" / path.relative_to(PACKAGE).parent / f"test_{path.name}"
        if path.is_relative_to(PACKAGE / "kernels"):
            # All implementations of an operation pass the same tests.
            operation = path.parent if path.parent.name != "kernels" else path
            mirror = ROOT / "tests/kernels" / f"test_{operation.stem}.py"
        exempt = name(path) in WITHOUT_TEST_OF_THEIR_OWN
        if path.name == "__init__.py":
            continue
        if mirror.exists() is exempt:
            missing.append(f"{name(path)}: {'no longer an exception' if exempt else mirror.name}")
    assert missing == []
    assert [m for m in WITHOUT_TEST_OF_THEIR_OWN if not (PACKAGE / m).exists()] == []


def test_everything_is_caught_only_in_the_three_agreed_places() -> None:
    found = set()
    for path in MODULES:
        for function in ast.walk(tree(path)):
            if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            for node in ast.walk(function):
                if isinstance(node, ast.ExceptHandler) and catches_everything(node):
                    found.add(f"{name(path)}:{function.name}")
    assert found - BROAD_EXCEPTS.keys() == set()


def catches_everything(handler: ast.ExceptHandler) -> bool:
    last = handler.body[-1]
    if isinstance(last, ast.Raise) and last.exc is None:
        return False  # it tidies up and lets go
    if handler.type is None:
        return True
    caught = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(
        isinstance(kind, ast.Name) and kind.id in ("Exception", "BaseException") for kind in caught
    )


def test_imports_point_down_only() -> None:
    # In a process of its own: it sets logging up anew, which switches existing loggers off.
    code = (
        "import sys; from importlinter.cli import lint_imports as run; sys.exit(run(no_cache=True))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("package", ["clients", "gateway", "sessions", "engines"])
def test_loading_a_package_loads_nothing_that_computes(package: str) -> None:
    if (PACKAGE / package / "__init__.py").exists():
        loaded = imported(f"duologue.{package}")
        assert f"duologue.{package}" in loaded
        assert loaded & set(HEAVY) == set()


@pytest.mark.parametrize("package", ["clients", "protocol", "telemetry", "core"])
def test_the_client_gets_by_without_the_servers_packages(package: str) -> None:
    if (PACKAGE / package / "__init__.py").exists():
        assert f"duologue.{package}" in imported(f"duologue.{package}", without=SERVER_ONLY)


def imported(module: str, without: tuple[str, ...] = ()) -> set[str]:
    """Import a module in a fresh interpreter, as if some packages were not installed."""
    program = (
        f"import sys; sys.modules.update(dict.fromkeys({without!r}))\n"
        f"import {module}; print(*sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def test_modules_and_public_names_say_what_they_are_for() -> None:
    silent = []
    for path in MODULES:
        if not ast.get_docstring(tree(path)):
            silent.append(name(path))
        for dotted, node in definitions(tree(path)):
            assert isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            overloaded = any("overload" in ast.unparse(mark) for mark in node.decorator_list)
            if not ast.get_docstring(node) and not overloaded:
                silent.append(f"{name(path)}:{dotted}")
    assert silent == []


def test_public_names_exist_once_and_mean_one_thing() -> None:
    exported: list[str] = []
    for path in PACKAGES:
        package = ".".join(path.relative_to(ROOT).parent.parts)
        names = public_names(path)
        assert len(names) == len(set(names)), f"{package}.__all__ repeats itself"
        exported += [each for each in names if each not in SAME_IN_EVERY_FOLDER]
    assert [each for each, times in Counter(exported).items() if times > 1] == []


def public_names(path: Path) -> list[str]:
    for node in tree(path).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return [str(each) for each in ast.literal_eval(node.value)]
    return []


def test_all_stands_in_packages_only() -> None:
    assert [name(p) for p in MODULES if p.name != "__init__.py" and public_names(p)] == []


def test_no_file_does_so_much_that_it_needs_so_many_lines() -> None:
    lengths = {
        str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines())
        for path in written_files(".py", ".js")
    }
    limits = {path: MAX_TEST_LINES if path.startswith("tests/") else MAX_LINES for path in lengths}
    assert {path: lines for path, lines in lengths.items() if lines > limits[path]} == {}


def test_no_file_is_a_drawer() -> None:
    drawers = {"helpers", "helper", "utils", "util", "common", "misc"}
    assert [str(path) for path in written_files(".py", ".js") if path.stem in drawers] == []


def test_nothing_is_left_for_later_and_no_test_is_switched_off() -> None:
    unfinished = re.compile(
        r"\b(TODO|FIXME|XXX|HACK)\b|no cover|mark\.(skip|xfail)|pytest\.(skip|xfail)|importorskip"
    )
    files = [path for path in written_files(".py", ".js", ".css", ".md") if path != Path(__file__)]
    assert matches(unfinished, files) == []


def test_models_are_named_only_where_they_live() -> None:
    files = [path for path in MODULES if name(path).partition("/")[0] in MODEL_FREE]
    assert matches(MODEL_NAMES, files) == []


def test_time_is_an_argument_and_not_read_from_the_loop() -> None:
    assert matches(re.compile(r"(?<!reschedule\()\bloop(\(\))?\.time\("), MODULES) == []


def test_queues_between_threads_have_a_size() -> None:
    assert matches(re.compile(r"\bQueue\(\)"), MODULES) == []


def test_tests_do_not_wait_for_time_to_pass() -> None:
    # Models sleep, too, but tests do not wait for that.
    sleeping = re.compile(r"\b(?:asyncio|time)\.sleep\((?!0\))|import .*\bsleep\b")
    files = [*(ROOT / "tests/unit").rglob("*.py"), *(ROOT / "tests/state").rglob("*.py")]
    assert matches(sleeping, [path for path in files if path != Path(__file__)]) == []


def test_our_own_code_is_not_patched_in_tests() -> None:
    files = [path for path in written_files(".py") if path != Path(__file__)]
    assert matches(re.compile(r"mock\.patch|import patch"), files) == []


def matches(pattern: re.Pattern[str], files: list[Path]) -> list[str]:
    return [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in files
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if pattern.search(line)
    ]


def test_log_events_are_constant_names() -> None:
    wrong = []
    for path in MODULES:
        for node in ast.walk(tree(path)):
            if not (isinstance(node, ast.Call) and is_log_call(node.func)):
                continue
            event = node.args[0] if node.args else None
            text = event.value if isinstance(event, ast.Constant) else None
            if not (isinstance(text, str) and re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", text)):
                wrong.append(f"{name(path)}:{node.lineno}")
    assert wrong == []


def is_log_call(function: ast.expr) -> bool:
    return (
        isinstance(function, ast.Attribute)
        and function.attr in ("debug", "info", "warning", "error", "exception", "critical")
        and ast.unparse(function.value).rpartition(".")[2] in ("log", "_log", "logger", "_logger")
    )
